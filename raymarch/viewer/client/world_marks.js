// World box, its axes with numbers and units, clipping box, slice, scale bar: drawn over the picture.

const AXIS_COLOURS = ["#ff7b72", "#7ee787", "#79b8ff"];
const AXIS_NAMES = ["x", "y", "z"];

// Colours of marks over dark pictures, and over bright ones.
const INKS = {
  dark: { axes: AXIS_COLOURS, line: "rgba(206, 212, 222, 0.42)", words: "#f2f4f7", halo: "rgba(10, 11, 14, 0.8)" },
  bright: {
    axes: ["#c92a1f", "#1a7f37", "#1f5fbf"],
    line: "rgba(40, 46, 56, 0.38)",
    words: "#15181d",
    halo: "rgba(255, 255, 255, 0.85)",
  },
};
// Corner i of a box: bit k of i says which end of axis k.
function corner(box, i) {
  return [0, 1, 2].map((k) => box[(i >> k) & 1][k]);
}

// Edges of a box by the indices of their corners, and their axis.
const EDGES = [0, 1, 2].flatMap((axis) =>
  [0, 1, 2, 3, 4, 5, 6, 7].filter((i) => !((i >> axis) & 1)).map((i) => [i, i | (1 << axis), axis]),
);

const PIECES = 24; // of a line, each as faint as what lies before it makes it
const FAINTEST = 0.06; // of a line behind what is opaque
const FAINTNESSES = 16; // that are told apart; pieces in a row that are as faint are one stroke

// How much of a point of the world is hidden: what is seen fills a box, through which the way from the eye goes. Before
// the box nothing hides it, but lines of a box, which are to leave the volume free, are as faint there as `front` says;
// behind it all that the picture covers there hides it, within it a share.
function hiddenBy(camera, picture, box, front = 0) {
  return (point) => {
    const [x, y] = camera.project(point);
    const covered = picture.coverAt(x / camera.width, y / camera.height);
    if (covered === 0) return 0;
    const { forward } = (camera.known ??= camera.axes);
    const way = camera.orthographic ? forward : subtract(point, camera.position);
    const reach = camera.orthographic ? dot(subtract(point, camera.position), forward) : 1;
    const start = camera.orthographic ? add(point, forward, -reach) : camera.position;
    let [near, far] = [0, Infinity];
    for (const k of [0, 1, 2]) {
      const ends = [box[0][k], box[1][k]].map((end) => (end - start[k]) / way[k]);
      if (ends.some(Number.isNaN)) continue;
      near = Math.max(near, Math.min(...ends));
      far = Math.min(far, Math.max(...ends));
    }
    if (!(far > near)) return 0;
    const share = (reach - near) / (far - near);
    return covered * (share < 1e-3 ? front : Math.min(Math.max(share, front), 1));
  };
}

function strokeSegment(drawing, camera, from, to, hidden = null) {
  if (hidden) {
    const alpha = drawing.globalAlpha;
    const seen = (i) => Math.round(FAINTNESSES * (1 - hidden(between(from, to, (i + 0.5) / PIECES)))) / FAINTNESSES;
    for (let first = 0, now = seen(0); first < PIECES; ) {
      let [end, next] = [first + 1, now];
      while (end < PIECES && (next = seen(end)) === now) end++;
      drawing.globalAlpha = alpha * Math.max(now, FAINTEST);
      strokeSegment(drawing, camera, between(from, to, first / PIECES), between(from, to, end / PIECES));
      [first, now] = [end, next];
    }
    drawing.globalAlpha = alpha;
    return;
  }
  const ends = cutBehind(camera, from, to);
  if (ends) drawLine(drawing, ends[0][0], ends[0][1], ends[1][0], ends[1][1]);
}

// Both ends of a segment as pixels, cut where it goes behind the camera; null if all of it is.
function cutBehind(camera, from, to) {
  const near = 1e-3 * camera.distance;
  const [a, b] = [from, to].map((point) => camera.project(point)[2]);
  if (camera.orthographic || (a > near && b > near)) return [camera.project(from), camera.project(to)];
  if (a <= near && b <= near) return null;
  const cut = between(from, to, (near - a) / (b - a));
  return a <= near ? [camera.project(cut), camera.project(to)] : [camera.project(from), camera.project(cut)];
}

function drawBox(drawing, camera, box, colour, hidden, width = 1) {
  drawing.strokeStyle = colour;
  drawing.lineWidth = width;
  for (const [a, b] of EDGES) strokeSegment(drawing, camera, corner(box, a), corner(box, b), hidden);
}

// The edge along an axis on the outline of the box that lies lowest, and then furthest to the left.
function outlineEdge(camera, box, axis) {
  const centre = between(box[0], box[1], 0.5);
  const seen = (k, end) => {
    const middle = [...centre];
    middle[k] = box[end][k];
    const away = [0, 0, 0];
    away[k] = end ? 1 : -1;
    const way = camera.orthographic ? scaled(camera.axes.forward, -1) : subtract(camera.position, middle);
    return dot(away, way) > 0;
  };
  const edges = EDGES.filter((edge) => edge[2] === axis).map(([a, b]) => {
    const sides = [0, 1, 2].filter((k) => k !== axis).map((k) => seen(k, (a >> k) & 1));
    const ends = [camera.project(corner(box, a)), camera.project(corner(box, b))];
    const low = ends[0][1] + ends[1][1] - 0.5 * (ends[0][0] + ends[1][0]);
    return { a, b, outline: sides[0] !== sides[1], low, behind: ends.some((end) => end[2] <= 0) };
  });
  const fine = edges.filter((edge) => edge.outline && !edge.behind);
  return fine.sort((one, other) => other.low - one.low)[0] ?? null;
}

// Ticks, numbers and names of the axes along the outline of the box.
function drawAxes(drawing, camera, box, unitName, ink, hidden) {
  const centre = camera.project(between(box[0], box[1], 0.5));
  drawing.font = "11px system-ui, sans-serif";
  drawing.textBaseline = "middle";
  const taken = [];
  for (const axis of [0, 1, 2]) {
    const edge = outlineEdge(camera, box, axis);
    if (!edge) continue;
    const [from, to] = [corner(box, edge.a), corner(box, edge.b)];
    const [p, q] = [camera.project(from), camera.project(to)];
    const span = Math.hypot(q[0] - p[0], q[1] - p[1]);
    if (span < 40) continue;
    const out = outward(p, q, centre);
    drawing.strokeStyle = drawing.fillStyle = ink.axes[axis];
    drawing.lineWidth = 1.5;
    strokeSegment(drawing, camera, from, to, hidden);
    const label = AXIS_NAMES[axis] + (unitName ? ` [${unitName}]` : "");
    const middle = [0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1])];
    drawing.font = "600 12px system-ui, sans-serif";
    place(drawing, label, middle, out, 36, taken, camera, ink);
    drawing.font = "11px system-ui, sans-serif";
    for (const value of ticks(from[axis], to[axis], clamp(span / 60, 2, 6))) {
      const point = [...from];
      point[axis] = value;
      const at = camera.project(point);
      drawing.lineWidth = 1;
      drawLine(drawing, at[0], at[1], at[0] + 5 * out[0], at[1] + 5 * out[1]);
      place(drawing, short(Number(value.toPrecision(6))), at, out, 9, taken, camera, ink);
    }
  }
}

// Unit vector across a segment on the screen, away from a place.
function outward(p, q, centre) {
  const across = unit([q[1] - p[1], p[0] - q[0], 0]);
  const middle = [0.5 * (p[0] + q[0]) - centre[0], 0.5 * (p[1] + q[1]) - centre[1], 0];
  return dot(across, middle) < 0 ? scaled(across, -1) : across;
}

// Words beside a place, with a shadow to be read over any picture; left out where others are already.
function place(drawing, words, at, out, gap, taken, camera, ink) {
  const width = drawing.measureText(words).width;
  const x = at[0] + (gap + 0.5 * width * Math.abs(out[0])) * out[0];
  const y = at[1] + (gap + 5 * Math.abs(out[1])) * out[1];
  if (x < 0.5 * width + 2 || x > camera.width - 0.5 * width - 2 || y < 8 || y > camera.height - 8) return;
  const mine = [x - 0.5 * width - 3, y - 7, x + 0.5 * width + 3, y + 7];
  if (taken.some((box) => mine[0] < box[2] && mine[2] > box[0] && mine[1] < box[3] && mine[3] > box[1])) return;
  taken.push(mine);
  shadowed(drawing, words, x, y, "center", ink);
}

function shadowed(drawing, words, x, y, align, ink) {
  drawing.textAlign = align;
  drawing.lineJoin = "round";
  drawing.lineWidth = 3;
  const colour = drawing.strokeStyle;
  drawing.strokeStyle = ink.halo;
  drawing.strokeText(words, x, y);
  drawing.strokeStyle = colour;
  drawing.fillText(words, x, y);
}

// A bar of a round length [world unit] at the depth of the target.
function drawScale(drawing, camera, unitName, x, y, most, ink) {
  const value = roundBelow(most * camera.pixelSize);
  const width = value / camera.pixelSize;
  drawing.font = "12px system-ui, sans-serif";
  drawing.textBaseline = "bottom";
  for (const [colour, thick] of [
    [ink.halo, 5],
    [ink.words, 2],
  ]) {
    drawing.strokeStyle = colour;
    drawing.lineWidth = thick;
    drawLine(drawing, x, y, x + width, y);
    drawLine(drawing, x, y - 5, x, y + 5);
    drawLine(drawing, x + width, y - 5, x + width, y + 5);
  }
  drawing.fillStyle = ink.words;
  shadowed(
    drawing,
    `${short(value)} ${unitName || (value === 1 ? "unit" : "units")}`,
    x + 0.5 * width,
    y - 5,
    "center",
    ink,
  );
}
