// Cross of the axes in a corner: shows how the camera is turned, and turns it along an axis by a click.

const REACH = 30; // pixels from its middle to a ball

function axisCross(viewer) {
  const canvas = sharpCanvas("rm-gizmo rm-over", "Axes: click an end to look along it", () => draw());
  canvas.title = "Click an axis to look along it";
  let hovered = null;

  const balls = () => {
    const { right, up, forward } = viewer.camera.axes;
    const middle = 0.5 * canvas.clientWidth;
    return [0, 1, 2]
      .flatMap((axis) =>
        [1, -1].map((sign) => {
          const way = [0, 0, 0];
          way[axis] = sign;
          const [x, y] = [middle + REACH * dot(way, right), middle - REACH * dot(way, up)];
          return { axis, sign, way, x, y, depth: dot(way, forward) };
        }),
      )
      .sort((a, b) => b.depth - a.depth);
  };

  function draw() {
    const drawing = cleared(canvas);
    if (!drawing) return;
    const middle = 0.5 * canvas.clientWidth;
    drawing.font = "600 11px system-ui, sans-serif";
    drawing.textAlign = "center";
    drawing.textBaseline = "middle";
    for (const { axis, sign, x, y, depth } of balls()) {
      const marked = hovered && hovered.axis === axis && hovered.sign === sign;
      drawing.globalAlpha = depth > 0.3 ? 0.55 : 1;
      drawing.strokeStyle = drawing.fillStyle = AXIS_COLOURS[axis];
      drawing.lineWidth = 2;
      if (sign > 0) drawLine(drawing, middle, middle, x, y);
      drawing.beginPath();
      drawing.arc(x, y, sign > 0 ? 9 : 6.5, 0, 7);
      if (sign > 0 || marked) drawing.fill();
      else {
        drawing.fillStyle = "rgba(20, 22, 27, 0.8)";
        drawing.fill();
        drawing.stroke();
      }
      drawing.fillStyle = sign > 0 || marked ? "#10131a" : AXIS_COLOURS[axis];
      if (sign > 0 || marked) drawing.fillText((sign > 0 ? "" : "−") + AXIS_NAMES[axis], x, y + 0.5);
    }
    drawing.globalAlpha = 1;
  }

  const under = (event) =>
    balls()
      .reverse()
      .find((ball) => Math.hypot(ball.x - event.offsetX, ball.y - event.offsetY) < 11);
  canvas.addEventListener("pointermove", (event) => {
    hovered = under(event) ?? null;
    canvas.style.cursor = hovered ? "pointer" : "default";
    draw();
  });
  canvas.addEventListener("pointerleave", () => {
    hovered = null;
    draw();
  });
  canvas.addEventListener("click", (event) => {
    const ball = under(event);
    if (!ball) return;
    viewer.lookAlong(scaled(ball.way, -1)); // from that end
  });
  let waiting = null; // for the screen's next frame: a hand moves more often
  const soon = () => {
    waiting ??= requestAnimationFrame(() => {
      waiting = null;
      if (!viewer.moving.withoutMarks) draw();
    });
  };
  for (const event of ["camera", "sent", "scene"]) viewer.on(event, soon);
  return canvas;
}
