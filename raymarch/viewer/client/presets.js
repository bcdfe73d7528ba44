// Presets of looks: modes, tables and light that fit a volume's values.

// A table over values from points [value, opacity] and stops [value, hex], its opacities of a length.
function presetTable(unit_length, points, stops) {
  const table = {
    points: points.map(([value, opacity]) => ({ value, opacity })),
    stops: stops.map(([value, hex]) => ({ value, colour: colourOf(hex) })),
    unit: unit_length,
  };
  return recordOfTable(table);
}

// Tables for scans whose values are Hounsfield units, in mm: points and stops as above.
const HOUNSFIELD = {
  "CT: bone": [
    [[150, 0], [350, 0.12], [1200, 0.75], [3000, 0.9]],
    [[150, "#8c3b24"], [350, "#d9a066"], [700, "#f2e0c0"], [1500, "#ffffff"]],
  ],
  "CT: skin and bone": [
    [[-400, 0], [-250, 0.12], [-100, 0.06], [150, 0.02], [300, 0.3], [1200, 0.8]],
    [[-400, "#d9a183"], [-100, "#e0ac90"], [120, "#b84a32"], [300, "#f0dcc0"], [1200, "#ffffff"]],
  ],
  "CT: vessels with contrast": [
    [[100, 0], [200, 0.08], [350, 0.45], [800, 0.7], [3000, 0.8]],
    [[100, "#7a1f14"], [220, "#d8402a"], [400, "#f2b08a"], [800, "#fff4e6"]],
  ],
  "CT: lung": [
    [[-950, 0], [-850, 0.05], [-600, 0.14], [-450, 0.02], [-350, 0]],
    [[-950, "#20305a"], [-750, "#5aa0d8"], [-500, "#e6f0f5"]],
  ],
}; // prettier-ignore

// Presets of a scene: { name: look }; those whose mode it has, and whose values.
function presetsOf(scene) {
  const modes = new Map(scene.modes.map((mode) => [mode.name, mode]));
  const [low, high] = scene.range ?? [0, 1];
  const at = (share) => low + share * (high - low);
  const sides = subtract(scene.box[1], scene.box[0]);
  const unit = scene.look.table?.unit_length ?? Math.max(...sides) / 50;
  const plain = { extras: "image", slice: null, window: null };
  const found = { "As it began": { ...plain, ...scene.look } };
  if (modes.has("transfer")) {
    if (scene.value_unit === "HU") {
      for (const [name, [points, stops]] of Object.entries(HOUNSFIELD)) {
        if (points[0][0] > high || points[points.length - 1][0] < low) continue;
        found[name] = { ...plain, mode: "transfer", shading: true, table: presetTable(unit, points, stops) };
      }
    }
    const shaped = (points, map) => {
      const stops = mapStops(map, low, high).map(({ value, colour }) => [value, hexOf(colour)]);
      return presetTable(unit, points.map(([share, opacity]) => [at(share), opacity]), stops); // prettier-ignore
    };
    const solid = [[0, 0], [0.28, 0], [0.36, 0.5], [1, 0.85]]; // prettier-ignore
    const shells = [[0, 0], [0.22, 0], [0.26, 0.12], [0.3, 0], [0.58, 0], [0.64, 0.6], [0.7, 0], [1, 0]]; // prettier-ignore
    found["Solid, lit"] = { ...plain, mode: "transfer", shading: true, table: shaped(solid, "bone") };
    found["Haze"] = { ...plain, mode: "transfer", shading: false, table: shaped(SHAPES.ramp, "viridis") };
    found["Shells, lit"] = { ...plain, mode: "transfer", shading: true, table: shaped(shells, "turbo") };
  }
  if (modes.has("isosurface")) {
    found["Surface, lit"] = { ...plain, mode: "isosurface", shading: true, iso: scene.look.iso ?? at(0.5) };
  }
  if (modes.has("maximum")) found["Maximum (MIP)"] = { ...plain, mode: "maximum" };
  if (modes.has("average")) found["Average"] = { ...plain, mode: "average" };
  if (modes.has("x-ray")) found["X-ray"] = { ...plain, mode: "x-ray" };
  return found;
}
