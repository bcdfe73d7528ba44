// Cameras and looks of the client as the ray marcher has them: a pose and focal lengths, RGBA of a table.

// The camera of the client as the ray marcher's.
function recordOfCamera(camera) {
  const { right, up, forward } = camera.axes;
  const p = camera.position;
  const pose = [0, 1, 2].flatMap((i) => [right[i], up[i], -forward[i], p[i]]).concat([0, 0, 0, 1]);
  const { width, height, orthographic } = camera;
  const focal = orthographic ? camera.focal / camera.distance : camera.focal;
  return { pose, focal: [focal, focal], principal: [width / 2, height / 2], width, height, parallel: orthographic };
}

// A table of the ray marcher as the editor has it, and back.
function recordOfLook({ values, rgba, unitLength }) {
  return { values, colours: rgba.map((one) => one.slice(0, 3)), opacities: rgba.map((one) => one[3]), unit_length: unitLength };
}

function lookOfRecord({ values, colours, opacities, unit_length }) {
  return { values, rgba: colours.map((colour, i) => [...colour, opacities[i]]), unitLength: unit_length };
}

// Half-spaces { [nx, ny, nz, offset] } of the world that a box from `low` to `high` is made of.
function planesOfBox(low, high) {
  const normal = (axis, sign) => [0, 1, 2].map((i) => (i === axis ? sign : 0));
  return [0, 1, 2].flatMap((axis) => [
    [...normal(axis, 1), low[axis]],
    [...normal(axis, -1), -high[axis]],
  ]);
}
