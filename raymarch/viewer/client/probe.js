// Value under the pointer, asked of the server when the pointer and the picture are at rest.

const STILL = 140; // ms without a move of the pointer until it is asked
const PROBE_NAMES = { value: "", extinction: "extinction ", surface: "surface at ", integral: "integral " };

class Probe {
  constructor(viewer, stage) {
    Object.assign(this, { viewer, stage, id: 0, at: null });
    this.chip = element("div", { class: "rm-chip", hidden: true, aria: { live: "off" } });
    viewer.on("probe", (answer) => this.show(answer));
    for (const event of ["camera", "look"]) viewer.on(event, () => this.hide());
  }

  // The pointer is at a place of the stage [CSS pixel]; null where it is not over the picture.
  move(at) {
    this.hide();
    this.at = at;
    if (at) this.timer = setTimeout(() => this.ask(), STILL);
  }

  hide() {
    clearTimeout(this.timer);
    this.chip.hidden = true;
    this.id += 1; // an answer that is on its way is of no use
  }

  ask() {
    const { viewer, at, stage } = this;
    if (!at || !viewer.scene || viewer.scene.fit || viewer.view !== null) return;
    if (!viewer.sender.settled) {
      this.timer = setTimeout(() => this.ask(), STILL);
      return;
    }
    const { width, height } = viewer.camera;
    const [x, y] = [(at[0] * width) / stage.clientWidth, (at[1] * height) / stage.clientHeight];
    if (x < 0 || y < 0 || x > width || y > height) return;
    viewer.send({ type: "probe", id: this.id, x, y });
  }

  show({ id, what, value, unit: unitName, depth, point }) {
    if (id !== this.id || !this.at || value === null) return;
    const lengths = this.viewer.scene.unit;
    const head = `${PROBE_NAMES[what] ?? `${what} `}${short(value)}`;
    const integral = what === "integral" && lengths ? ` ${lengths}` : "";
    const inverse = what === "extinction" && lengths ? ` /${lengths}` : "";
    const lines = [[head, unitName].filter(Boolean).join(" ") + integral + inverse];
    if (depth !== null) lines.push(`depth ${[short(depth), lengths].filter(Boolean).join(" ")}`);
    if (point) lines.push(`at ${point.map((x) => short(x, 3)).join(", ")}`);
    this.chip.replaceChildren(...lines.map((line, i) => element(i ? "span" : "strong", { text: line })));
    this.chip.hidden = false;
    const [x, y] = this.at;
    const { offsetWidth: width, offsetHeight: height } = this.chip;
    this.chip.style.left = `${x + 16 + width > this.stage.clientWidth ? x - 12 - width : x + 16}px`;
    this.chip.style.top = `${clamp(y + 14, 4, this.stage.clientHeight - height - 4)}px`;
  }
}
