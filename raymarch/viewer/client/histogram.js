// Histogram of a volume's values: its bars by the logarithm of their counts, over any range of values.

function drawHistogram(drawing, histogram, low, high, box, colour) {
  const { edges, counts } = histogram;
  if (!counts || !counts.length) return;
  const most = Math.log1p(Math.max(...counts)) || 1;
  const across = (value) => box.x + (box.width * (value - low)) / (high - low);
  drawing.save();
  drawing.beginPath();
  drawing.rect(box.x, box.y, box.width, box.height);
  drawing.clip();
  drawing.beginPath();
  drawing.moveTo(across(edges[0]), box.y + box.height);
  counts.forEach((count, i) => {
    const top = box.y + box.height * (1 - (0.94 * Math.log1p(count)) / most);
    drawing.lineTo(across(edges[i]), top);
    drawing.lineTo(across(edges[i + 1]), top);
  });
  drawing.lineTo(across(edges[edges.length - 1]), box.y + box.height);
  drawing.closePath();
  drawing.fillStyle = colour;
  drawing.fill();
  drawing.restore();
}

// A histogram with a line at one value, which is dragged; `change(value, moving)` hears of it.
function histogramLine(viewer, label, change) {
  const canvas = sharpCanvas("rm-histogram", label, () => draw());
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "slider");
  const range = () => viewer.scene?.range ?? [0, 1];
  const draw = () => {
    const drawing = cleared(canvas);
    if (!drawing || !viewer.scene) return;
    const [low, high] = range();
    const box = { x: 0, y: 0, width: canvas.clientWidth, height: canvas.clientHeight };
    drawHistogram(drawing, viewer.scene.histogram ?? {}, low, high, box, "#4a5260");
    const x = clamp((box.width * (canvas.value - low)) / (high - low), 1, box.width - 1);
    drawing.fillStyle = "#66b0ff";
    drawing.fillRect(x - 1, 0, 2, box.height);
    drawing.beginPath();
    drawing.arc(x, box.height - 6, 5, 0, 7);
    drawing.fill();
  };
  const take = (event, moving) => {
    const [low, high] = range();
    canvas.set(low + (high - low) * clamp(event.offsetX / canvas.clientWidth, 0, 1));
    change(canvas.value, moving);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    take(event, true);
  });
  canvas.addEventListener("pointermove", (event) => event.buttons && take(event, true));
  canvas.addEventListener("pointerup", (event) => take(event, false));
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const [low, high] = range();
    canvas.set(clamp(canvas.value + ((high - low) / 100) * way, low, high));
    change(canvas.value, false);
  });
  canvas.set = (value) => {
    canvas.value = value;
    canvas.setAttribute("aria-valuetext", short(value));
    draw();
  };
  canvas.value = 0;
  return canvas;
}
