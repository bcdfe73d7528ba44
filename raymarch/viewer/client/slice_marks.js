// Marks over the picture of a slice: outline of the box, axes with numbers and units, sides of a body, scale bar.

function drawSliceMarks(drawing, stage, box, slice, unitName, toggles, ink) {
  const [width, height] = [stage.clientWidth, stage.clientHeight];
  const [across, up] = [0, 1, 2].filter((axis) => axis !== slice.axis);
  const size = (slice.upper[0] - slice.lower[0]) / width; // below 0 where the axis goes to the left
  const pixelSize = Math.abs(size);
  const x = (value) => (value - slice.lower[0]) / size;
  const y = (value) => height - ((value - slice.lower[1]) * height) / (slice.upper[1] - slice.lower[1]);
  const [left, right] = [x(box[0][across]), x(box[1][across])].sort((a, b) => a - b);
  const [top, bottom] = [y(box[0][up]), y(box[1][up])].sort((a, b) => a - b);
  drawing.lineWidth = 1;
  drawing.strokeStyle = ink.line;
  if (toggles.box.pressed) drawing.strokeRect(left, top, right - left, bottom - top);
  if (!toggles.axes.pressed) return;
  drawing.font = "11px system-ui, sans-serif";
  drawing.textBaseline = "middle";
  const named = (axis) => AXIS_NAMES[axis] + (unitName ? ` [${unitName}]` : "");
  const inside = { low: clamp(bottom, 0, height - 4), left: clamp(left, 4, width) };
  drawing.strokeStyle = drawing.fillStyle = ink.axes[across];
  for (const value of ticks(box[0][across], box[1][across], clamp((right - left) / 70, 2, 8))) {
    drawLine(drawing, x(value), inside.low, x(value), inside.low - 5);
    shadowed(drawing, short(Number(value.toPrecision(6))), x(value), inside.low - 13, "center", ink);
  }
  shadowed(drawing, named(across), 0.5 * (left + right), inside.low - 29, "center", ink);
  drawing.strokeStyle = drawing.fillStyle = ink.axes[up];
  for (const value of ticks(box[0][up], box[1][up], clamp((bottom - top) / 60, 2, 8))) {
    if (y(value) > inside.low - 24) continue;
    drawLine(drawing, inside.left, y(value), inside.left + 5, y(value));
    shadowed(drawing, short(Number(value.toPrecision(6))), inside.left + 9, y(value), "left", ink);
  }
  shadowed(drawing, named(up), inside.left + 44, 0.5 * (bottom + top) + 16, "left", ink);
  drawing.fillStyle = ink.axes[slice.axis];
  const place = tidy(slice.position, box[1][slice.axis] - box[0][slice.axis]);
  const words = `${AXIS_NAMES[slice.axis]} = ${short(place)} ${unitName}`;
  drawing.font = "600 13px system-ui, sans-serif";
  shadowed(drawing, words, 0.5 * (left + right), Math.max(top + 18, 70), "center", ink);
  if (slice.sides.length) {
    const [ends, heads] = [0.5 * (top + bottom) - 22, 0.5 * (left + right)];
    const [atLeft, atRight, below, above] = slice.sides;
    drawing.fillStyle = ink.axes[across];
    shadowed(drawing, atLeft, inside.left + 52, ends, "center", ink); // right of the numbers
    shadowed(drawing, atRight, Math.min(right, width) - 14, ends, "center", ink);
    drawing.fillStyle = ink.axes[up];
    shadowed(drawing, below, heads, inside.low - 48, "center", ink);
    shadowed(drawing, above, heads, Math.max(top + 18, 70) + 20, "center", ink);
  }
  const most = 0.18 * width;
  drawScale(
    drawing,
    { pixelSize },
    unitName,
    width - 20 - roundBelow(most * pixelSize) / pixelSize,
    height - 52,
    most,
    ink,
  );
}
