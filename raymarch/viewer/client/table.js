// Transfer function as it is edited: points of opacity and stops of colour, each with places of its own.

const CLOSEST = 1e-5; // of the range, that knots keep from each other
const MOST_KNOTS = 1024; // that rm.TransferFunction takes

// Points and stops of a record { values, colours, opacities, unit_length }, fewer where lines go through them.
function tableOfRecord(record) {
  const { values, colours, opacities } = record;
  const lists = [values, colours, opacities].every(Array.isArray);
  if (!lists || values.length < 2 || colours.length !== values.length || opacities.length !== values.length) {
    throw new Error("want values, colours and opacities, as many of each, two or more");
  }
  const numbers = [values, opacities, ...colours].every((list) => list.every((v) => Number.isFinite(v)));
  const rising = values.every((v, i) => !i || v > values[i - 1]);
  if (!numbers || !rising) throw new Error("want rising values, and numbers alone");
  const kept = (lists, tolerance) => fewer(values, lists, tolerance);
  const made = {
    points: kept(
      opacities.map((o) => [o]),
      0.002,
    ).map((i) => ({ value: values[i], opacity: opacities[i] })),
    stops: kept(colours, 0.012).map((i) => ({ value: values[i], colour: [...colours[i]] })),
    unit: record.unit_length ?? 1,
  };
  const places = new Set([...made.points, ...made.stops].map((knot) => knot.value)); // a point and a stop may share one
  if (places.size > MOST_KNOTS) throw new Error(`want ${MOST_KNOTS} knots at most`);
  return made;
}

// Indices of knots that say the same within a tolerance (Douglas and Peucker 1973).
function fewer(values, lists, tolerance) {
  const keep = new Set([0, values.length - 1]);
  const divide = (from, to) => {
    let [worst, most] = [0, tolerance];
    for (let i = from + 1; i < to; i++) {
      const line = interpolated([values[from], values[to]], [lists[from], lists[to]], values[i]);
      const off = Math.max(...line.map((v, k) => Math.abs(v - lists[i][k])));
      if (off > most) [worst, most] = [i, off];
    }
    if (!worst) return;
    keep.add(worst);
    divide(from, worst);
    divide(worst, to);
  };
  divide(0, values.length - 1);
  return [...keep].sort((a, b) => a - b);
}

function opacityAt(table, value) {
  return interpolated(
    table.points.map((p) => p.value),
    table.points.map((p) => [p.opacity]),
    value,
  )[0];
}

function colourAt(table, value) {
  return interpolated(
    table.stops.map((s) => s.value),
    table.stops.map((s) => s.colour),
    value,
  );
}

// The record that rm.TransferFunction.of_record reads: knots wherever a point or a stop is.
function recordOfTable(table) {
  const all = [...table.points, ...table.stops].map((knot) => knot.value).sort((a, b) => a - b);
  const least = CLOSEST * (all[all.length - 1] - all[0] || 1);
  const values = all.filter((value, i) => !i || value - all[i - 1] > 0);
  const apart = values.filter((value, i) => !i || value - values[i - 1] >= least);
  return {
    values: apart,
    colours: apart.map((value) => colourAt(table, value).map((c) => clamp(c, 0, 1))),
    opacities: apart.map((value) => clamp(opacityAt(table, value), 0, 1)),
    unit_length: table.unit,
  };
}

// Moves a knot between its neighbours.
function moveKnot(knots, knot, value, least) {
  const i = knots.indexOf(knot);
  const low = i > 0 ? knots[i - 1].value + least : -Infinity;
  const high = i < knots.length - 1 ? knots[i + 1].value - least : Infinity;
  knot.value = clamp(value, low, Math.max(low, high));
}

function addKnot(knots, knot) {
  knots.push(knot);
  knots.sort((a, b) => a.value - b.value);
  return knot;
}

// Another colour map over the range that has one.
function withMap(table, name) {
  const [low, high] = [table.stops[0].value, table.stops[table.stops.length - 1].value];
  return { ...table, stops: mapStops(name, low, high) };
}

// Shapes of opacity over the range that is seen.
const SHAPES = {
  ramp: [
    [0, 0],
    [0.2, 0],
    [1, 0.6],
  ],
  steep: [
    [0, 0],
    [0.5, 0],
    [0.62, 0.55],
    [1, 0.6],
  ],
  peak: [
    [0, 0],
    [0.42, 0],
    [0.5, 0.6],
    [0.58, 0],
    [1, 0],
  ],
  peaks: [
    [0, 0],
    [0.2, 0],
    [0.25, 0.2],
    [0.3, 0],
    [0.6, 0],
    [0.68, 0.6],
    [0.76, 0],
    [1, 0],
  ],
  constant: [
    [0, 0.1],
    [1, 0.1],
  ],
};

function withShape(table, name, low, high) {
  const points = SHAPES[name].map(([share, opacity]) => ({ value: low + share * (high - low), opacity }));
  return { ...table, points };
}
