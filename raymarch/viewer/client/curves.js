// Chart of a curve over the steps of a fit.

function drawCurve(canvas, points, { name, unitName = "", colour, log }) {
  const drawing = cleared(canvas);
  if (!drawing) return;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const box = { left: 46, right: width - 8, top: 18, bottom: height - 14 };
  drawing.font = "11px system-ui, sans-serif";
  drawing.textBaseline = "middle";
  drawing.fillStyle = colour;
  drawing.textAlign = "left";
  const shown = log ? points.filter((pair) => pair[1] > 0) : points;
  const last = shown[shown.length - 1];
  drawing.fillText(last ? `${name} ${short(last[1])} ${unitName}` : `${name}: none yet`, box.left, 8);
  if (!last) return;
  const level = (value) => (log ? Math.log10(value) : value);
  const levels = shown.map((pair) => level(pair[1]));
  let [low, high] = [Math.min(...levels), Math.max(...levels)];
  const room = Math.max(0.06 * (high - low), log ? 0.02 : 0.05);
  [low, high] = [low - room, high + room];
  const from = shown[0][0];
  const to = Math.max(last[0], from + 1);
  const x = (step) => box.left + ((box.right - box.left) * (step - from)) / (to - from);
  const y = (place) => box.bottom - ((box.bottom - box.top) * (place - low)) / (high - low);
  drawing.strokeStyle = "#2b3039";
  drawing.fillStyle = "#8f97a5";
  drawing.lineWidth = 1;
  drawing.textAlign = "right";
  for (const place of curveTicks(low, high, log)) {
    drawLine(drawing, box.left, y(place), box.right, y(place));
    drawing.fillText(tickWords(log ? 10 ** place : place), box.left - 5, y(place));
  }
  drawing.fillText(`step ${last[0]}`, box.right, height - 6);
  drawing.textAlign = "left";
  drawing.fillText(String(from), box.left, height - 6);
  drawing.beginPath();
  shown.forEach((pair, i) => drawing.lineTo(x(pair[0]), y(levels[i])));
  drawing.strokeStyle = colour;
  drawing.lineWidth = 1.6;
  drawing.lineJoin = "round";
  drawing.stroke();
  drawing.beginPath();
  drawing.arc(x(last[0]), y(level(last[1])), 2.6, 0, 7);
  drawing.fillStyle = colour;
  drawing.fill();
}

// Lines across a chart; of a logarithm at round numbers, the coarsest of which there are two.
function curveTicks(low, high, log) {
  if (!log) return ticks(low, high, 3);
  for (const parts of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 6, 8]]) {
    const inside = [];
    for (let power = Math.floor(low); power <= high; power++) {
      for (const part of parts) inside.push(power + Math.log10(part));
    }
    const seen = inside.filter((place) => place >= low && place <= high);
    if (seen.length > 1) return seen.filter((_, i) => i % Math.ceil(seen.length / 4) === 0);
  }
  return [0.25, 0.75].map((share) => low + share * (high - low));
}

function tickWords(value) {
  return value > 0 && (value < 0.01 || value >= 1e5)
    ? value.toExponential(1).replace(".0e", "e").replace("e+", "e")
    : short(value, 3);
}
