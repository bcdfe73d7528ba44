// Vectors of three numbers, round numbers, and how numbers are written.

function add(a, b, factor = 1) {
  return [a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]];
}

function subtract(a, b) {
  return add(a, b, -1);
}

function scaled(a, factor) {
  return [factor * a[0], factor * a[1], factor * a[2]];
}

function dot(a, b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

function cross(a, b) {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

function length(a) {
  return Math.hypot(a[0], a[1], a[2]);
}

function unit(a) {
  return scaled(a, 1 / (length(a) || 1));
}

function between(a, b, share) {
  return add(scaled(a, 1 - share), b, share);
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// Rodrigues' rotation of a vector about a unit axis.
function rotated(a, axis, angle) {
  const c = Math.cos(angle);
  const s = Math.sin(angle);
  return add(add(scaled(a, c), cross(axis, a), s), axis, dot(axis, a) * (1 - c));
}

// A unit vector across a unit vector.
function anyAcross(a) {
  const other = Math.abs(a[2]) < 0.9 ? [0, 0, 1] : [0, 1, 0];
  return unit(cross(a, other));
}

// The largest of 1, 2, 5 times a power of ten that is at most a positive number.
function roundBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const share = value / power;
  return power * (share >= 5 ? 5 : share >= 2 ? 2 : 1);
}

// Round numbers from low to high, about so many.
function ticks(low, high, about) {
  if (!(high > low)) return [];
  const step = roundBelow(((high - low) / about) * 1.4);
  const all = [];
  for (let i = Math.ceil(low / step - 1e-6); i * step <= high + 1e-6 * step; i++) all.push(i * step);
  return all;
}

// A number without what rounding left of it, of the size of a range.
function tidy(value, range) {
  const step = 10 ** Math.floor(Math.log10(range || 1) - 5);
  return Number((Math.round(value / step) * step).toPrecision(9));
}

// A number in few figures: 0.0123, 4.5, 1200, 3.1e-7; 0 where it is nothing beside `whole`.
function short(value, figures = 4, whole = 0) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size <= 1e-6 * Math.abs(whole)) return "0";
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.min(figures - 1, 2)).replace("e+", "e");
  return String(Number(value.toPrecision(figures)));
}

function seconds(value) {
  if (!Number.isFinite(value)) return "–";
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(value - 60 * minutes)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function hexOf(colour) {
  return (
    "#" +
    colour
      .map((c) =>
        Math.round(255 * clamp(c, 0, 1))
          .toString(16)
          .padStart(2, "0"),
      )
      .join("")
  );
}

function colourOf(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
}

function cssOf(colour, alpha = 1) {
  const [r, g, b] = colour.map((c) => Math.round(255 * clamp(c, 0, 1)));
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

// A function that is linear between rising places and constant beyond them, at one place; values are lists.
function interpolated(places, values, at) {
  const last = places.length - 1;
  if (at <= places[0]) return values[0];
  if (at >= places[last]) return values[last];
  let i = 1;
  while (places[i] < at) i++;
  const share = (at - places[i - 1]) / (places[i] - places[i - 1]);
  return values[i].map((high, k) => (1 - share) * values[i - 1][k] + share * high);
}
