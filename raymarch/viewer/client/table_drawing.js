// Transfer function drawn: histogram behind, area and line of opacity in the colours that it has, bar and stops below.

const MARGIN = { left: 8, right: 8, top: 10, bar: 14, stops: 13 };

// Between values and pixels of the editor, the range of values being what is shown of it.
function tableFrame(canvas, low, high) {
  const width = canvas.clientWidth - MARGIN.left - MARGIN.right;
  const bottom = canvas.clientHeight - MARGIN.bar - MARGIN.stops;
  const height = bottom - MARGIN.top;
  return {
    low,
    high,
    box: { x: MARGIN.left, y: MARGIN.top, width, height },
    bottom,
    x: (value) => MARGIN.left + (width * (value - low)) / (high - low),
    y: (opacity) => bottom - height * opacity,
    value: (x) => low + ((high - low) * (x - MARGIN.left)) / width,
    opacity: (y) => clamp((bottom - y) / height, 0, 1),
  };
}

function drawTable(drawing, table, frame, histogram, chosen, hovered) {
  const { box, bottom } = frame;
  drawing.fillStyle = "#121418";
  drawing.fillRect(box.x, box.y, box.width, box.height);
  drawing.strokeStyle = "#23272e";
  for (const share of [0.25, 0.5, 0.75]) drawLine(drawing, box.x, frame.y(share), box.x + box.width, frame.y(share));
  drawHistogram(drawing, histogram ?? {}, frame.low, frame.high, box, "#343a45");
  const gradient = tableGradient(drawing, table, frame);
  drawing.save();
  drawing.beginPath();
  drawing.rect(box.x, box.y - MARGIN.top, box.width, box.height + MARGIN.top + 1);
  drawing.clip();
  opacityPath(drawing, table, frame);
  drawing.lineWidth = 2;
  drawing.strokeStyle = "#e8ebf0";
  drawing.stroke();
  drawing.lineTo(box.x + box.width, bottom);
  drawing.lineTo(box.x, bottom);
  drawing.globalAlpha = 0.5;
  drawing.fillStyle = gradient;
  drawing.fill();
  drawing.restore();
  drawing.fillStyle = gradient;
  drawing.fillRect(box.x, bottom + 1, box.width, MARGIN.bar - 2);
  for (const stop of table.stops)
    drawStop(drawing, frame, stop, stop === chosen, stop === hovered, table.stops.length > 12);
  for (const point of table.points) drawPoint(drawing, table, frame, point, point === chosen, point === hovered);
}

function drawLine(drawing, x, y, toX, toY) {
  drawing.beginPath();
  drawing.moveTo(x, y);
  drawing.lineTo(toX, toY);
  drawing.stroke();
}

function tableGradient(drawing, table, frame) {
  const { box } = frame;
  const gradient = drawing.createLinearGradient(box.x, 0, box.x + box.width, 0);
  gradient.addColorStop(0, cssOf(colourAt(table, frame.low)));
  for (const stop of table.stops) {
    const share = (stop.value - frame.low) / (frame.high - frame.low);
    if (share > 0 && share < 1) gradient.addColorStop(share, cssOf(stop.colour));
  }
  gradient.addColorStop(1, cssOf(colourAt(table, frame.high)));
  return gradient;
}

function opacityPath(drawing, table, frame) {
  const { box } = frame;
  drawing.beginPath();
  drawing.moveTo(box.x, frame.y(opacityAt(table, frame.low)));
  for (const point of table.points) {
    if (point.value > frame.low && point.value < frame.high)
      drawing.lineTo(frame.x(point.value), frame.y(point.opacity));
  }
  drawing.lineTo(box.x + box.width, frame.y(opacityAt(table, frame.high)));
}

function drawPoint(drawing, table, frame, point, chosen, hovered) {
  if (point.value < frame.low || point.value > frame.high) return;
  drawing.beginPath();
  drawing.arc(frame.x(point.value), frame.y(point.opacity), chosen || hovered ? 6.5 : 5, 0, 7);
  drawing.fillStyle = cssOf(colourAt(table, point.value));
  drawing.fill();
  drawing.lineWidth = 2;
  drawing.strokeStyle = chosen ? "#66b0ff" : "#f2f4f7";
  drawing.stroke();
}

function drawStop(drawing, frame, stop, chosen, hovered, many) {
  if (stop.value < frame.low || stop.value > frame.high) return;
  const x = frame.x(stop.value);
  const top = frame.bottom + MARGIN.bar;
  const half = chosen || hovered ? 5.5 : many ? 2.5 : 4;
  drawing.beginPath();
  drawing.moveTo(x, top - 2);
  drawing.lineTo(x + half, top + 5);
  drawing.lineTo(x + half, top + 11);
  drawing.lineTo(x - half, top + 11);
  drawing.lineTo(x - half, top + 5);
  drawing.closePath();
  drawing.fillStyle = cssOf(stop.colour);
  drawing.fill();
  drawing.lineWidth = 1.5;
  drawing.strokeStyle = chosen ? "#66b0ff" : "#c5cad3";
  drawing.stroke();
}

// The point or stop under a pixel, or null.
function knotAt(table, frame, x, y) {
  const near = (knot, px, py, reach) => Math.hypot(px - x, py - y) < reach && knot;
  const points = table.points.filter((p) => near(p, frame.x(p.value), frame.y(p.opacity), 10));
  if (points.length) return points[points.length - 1];
  if (y < frame.bottom) return null;
  const stops = table.stops.filter((s) => near(s, frame.x(s.value), y, 6));
  return stops[stops.length - 1] ?? null;
}
