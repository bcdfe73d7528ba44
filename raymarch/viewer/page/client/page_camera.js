// Between cameras of the page and those of the ray marcher, which have a pose and focal lengths.

// A camera of another size that shows all that one showed, and more at two sides.
function reframed(record, width, height) {
  const scale = Math.min(width / record.width, height / record.height);
  const more = [(width - scale * record.width) / 2, (height - scale * record.height) / 2];
  return {
    ...record,
    focal: record.focal.map((f) => f * scale),
    principal: record.principal.map((c, i) => c * scale + more[i]),
    width,
    height,
  };
}

// The frame of a camera's picture within a larger one: left, top, width, height.
function frameOf(record, width, height) {
  const scale = Math.min(width / record.width, height / record.height);
  const size = [record.width * scale, record.height * scale];
  return [(width - size[0]) / 2, (height - size[1]) / 2, ...size];
}

// A ray marcher's camera as the page's, which looks as far as a point; `pole` is up where it is so in the picture.
function cameraOfRecord(record, like, centre, pole) {
  const m = record.pose;
  const column = (i) => [m[i], m[4 + i], m[8 + i]];
  const fov = (360 / Math.PI) * Math.atan(record.width / 2 / record.focal[0]);
  const given = { position: column(3), forward: scaled(column(2), -1), up: column(1), fov };
  const camera = cameraOfSet({ ...given, aspect: record.width / record.height }, like, centre);
  if (Math.abs(dot(column(0), unit(pole))) < 0.02 && dot(column(1), pole) > 0) camera.up = unit(pole);
  if (record.parallel) {
    camera.orthographic = true;
    const scale = Math.min(like.width / record.width, like.height / record.height);
    const tangent = Math.tan(0.5 * camera.fov);
    const far = (0.5 * Math.min(like.width, like.height)) / (tangent * record.focal[0] * scale);
    camera.target = add(camera.position, given.forward, far);
  }
  camera.forget();
  return camera;
}

// The camera between two of a path.
function recordBetween(a, b, share) {
  const mix = (x, y) => x.map((one, i) => (1 - share) * one + share * y[i]);
  const m = mix(a.pose, b.pose);
  const column = (i) => [m[i], m[4 + i], m[8 + i]];
  const back = unit(column(2));
  const right = unit(cross(column(1), back));
  const up = cross(back, right);
  const pose = [0, 1, 2].flatMap((i) => [right[i], up[i], back[i], m[4 * i + 3]]).concat([0, 0, 0, 1]);
  return { ...a, pose, focal: mix(a.focal, b.focal), principal: mix(a.principal, b.principal) };
}
