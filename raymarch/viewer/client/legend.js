// Legend: what colours and greys of the picture stand for, with numbers and the unit.

const LEGEND_BAR = { x: 8, width: 14, top: 26 };

// What is to be said: { title, low, high, colour(value), opacity(value) | null }, or null.
function legendOf(viewer, frame, table) {
  const { scene, lookNow, mode } = viewer;
  if (!scene || !frame) return null;
  const grey = (low, high) => (value) => Array(3).fill(clamp((value - low) / (high - low || 1), 0, 1));
  const titled = (name, unitName) => (unitName ? `${name} [${unitName}]` : name);
  const output = lookNow.extras ?? "image";
  if (!lookNow.slice && output === "depth") {
    if (!frame.depth) return null;
    const [low, high] = frame.depth;
    const colour = (value) => Array(3).fill(1 - 0.8 * clamp((value - low) / (high - low || 1), 0, 1));
    return { title: titled("depth", scene.unit), low, high, colour };
  }
  if (!lookNow.slice && output === "opacity") return { title: "opacity", low: 0, high: 1, colour: grey(0, 1) };
  if (!lookNow.slice && output === "normals") return null;
  if (mode.table && table && (lookNow.slice || output === "image")) {
    const knots = [...table.points, ...table.stops].map((knot) => knot.value);
    const [low, high] = [Math.min(...knots), Math.max(...knots)];
    const most = Math.max(...table.points.map((point) => point.opacity)) || 1;
    const opacity = (value) => opacityAt(table, value) / most;
    return { title: titled("value", scene.value_unit), low, high, colour: (v) => colourAt(table, v), opacity };
  }
  if (!lookNow.slice && mode.iso) {
    const iso = lookNow.iso;
    return iso === null ? null : { title: `surface at ${short(iso)} ${scene.value_unit ?? ""}`.trim() };
  }
  if (!frame.window) return null;
  const [low, high] = frame.window;
  const integral = mode.name?.startsWith("x-ray") && !lookNow.slice;
  const unitName = integral ? [scene.value_unit, scene.unit].filter(Boolean).join(" ") : scene.value_unit;
  return { title: titled(integral ? "integral" : "value", unitName), low, high, colour: grey(low, high) };
}

class Legend {
  constructor(viewer, tableOf) {
    Object.assign(this, { viewer, tableOf, frame: null, pressed: true });
    this.canvas = sharpCanvas("rm-legend", "Legend", () => this.draw());
    this.canvas.setAttribute("role", "img");
    this.canvas.hidden = true;
    viewer.on("frame", (frame) => {
      this.frame = frame;
      this.show();
    });
    viewer.on("look", () => this.show());
  }

  show() {
    const said = this.pressed && this.viewer.view === null ? legendOf(this.viewer, this.frame, this.tableOf()) : null;
    this.said = said;
    this.canvas.hidden = !said;
    this.canvas.classList.toggle("rm-line", Boolean(said && !said.colour));
    const range = said?.colour ? `, ${short(said.low)} to ${short(said.high)}` : "";
    this.canvas.setAttribute("aria-label", said ? `Legend: ${said.title}${range}` : "Legend");
    this.draw();
  }

  draw() {
    const drawing = this.said && cleared(this.canvas);
    if (!drawing) return;
    const { title, low, high, colour, opacity } = this.said;
    const { x, width, top } = LEGEND_BAR;
    drawing.font = "600 11px system-ui, sans-serif";
    drawing.textBaseline = "middle";
    drawing.fillStyle = "#f2f4f7";
    drawing.fillText(title, x, 13, this.canvas.clientWidth - 2 * x);
    if (!colour) return;
    const bottom = this.canvas.clientHeight - 12;
    const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low || 1);
    for (let i = 0; i < bottom - top; i++) {
      const value = high - ((i + 0.5) / (bottom - top)) * (high - low);
      drawing.fillStyle = cssOf(colour(value));
      drawing.fillRect(x, top + i, width, 1.5);
      if (!opacity) continue;
      drawing.fillStyle = `rgba(242, 244, 247, ${0.9 * clamp(opacity(value), 0, 1)})`;
      drawing.fillRect(x + width + 2, top + i, 4, 1.5);
    }
    drawing.strokeStyle = "#ffffff55";
    drawing.lineWidth = 1;
    drawing.strokeRect(x - 0.5, top - 0.5, width + 1, bottom - top + 1);
    drawing.font = "11px system-ui, sans-serif";
    drawing.fillStyle = "#dde1e8";
    const from = x + width + (opacity ? 8 : 3);
    for (const value of ticks(low, high, 5)) {
      drawing.fillRect(from - 2, y(value) - 0.5, 4, 1);
      drawing.fillText(short(Number(value.toPrecision(6))), from + 5, y(value));
    }
  }
}
