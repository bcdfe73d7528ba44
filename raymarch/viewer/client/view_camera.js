// Camera of the page: orbit, pan, zoom, roll, projection. Its field of view is that of the picture's shorter side.

class ViewCamera {
  constructor() {
    Object.assign(this, { position: [0, -4, 0], target: [0, 0, 0], up: [0, 0, 1], fov: 0.7 });
    Object.assign(this, { orthographic: false, width: 1, height: 1 });
  }

  copy() {
    return Object.assign(new ViewCamera(), this, { known: undefined });
  }

  get distance() {
    return length(subtract(this.target, this.position));
  }

  // Right, up and forward of the picture, unit vectors.
  get axes() {
    const forward = unit(subtract(this.target, this.position));
    let right = cross(forward, this.up);
    right = length(right) < 1e-9 * length(this.up) ? anyAcross(forward) : unit(right);
    return { right, up: cross(right, forward), forward };
  }

  // Focal length [pixel].
  get focal() {
    return (0.5 * Math.min(this.width, this.height)) / Math.tan(0.5 * this.fov);
  }

  // As messages have it: the field of view horizontal, in degrees.
  message() {
    const fov = (360 / Math.PI) * Math.atan((0.5 * this.width) / this.focal);
    const { position, target, up, orthographic, width, height } = this;
    return { position, target, up, fov, orthographic, width, height };
  }

  // Takes what a message has; a field of view [degrees] is taken for the shorter side's.
  take(given) {
    for (const name of ["position", "target", "up"]) if (given[name]) this[name] = given[name].map(Number);
    if (given.fov) this.fov = (given.fov * Math.PI) / 180;
    if (given.orthographic !== undefined) this.orthographic = Boolean(given.orthographic);
  }

  // Pixel and depth of a point of the world.
  project(point) {
    const { right, up, forward } = (this.known ??= this.axes);
    const way = subtract(point, this.position);
    const depth = dot(way, forward);
    const factor = this.focal / (this.orthographic ? this.distance : depth);
    return [0.5 * this.width + factor * dot(way, right), 0.5 * this.height - factor * dot(way, up), depth];
  }

  // World units that a pixel is wide at the target.
  get pixelSize() {
    return this.distance / this.focal;
  }

  orbit(across, down) {
    const { right, forward } = this.axes;
    const pole = unit(this.up);
    const height = Math.acos(clamp(dot(scaled(forward, -1), pole), -1, 1)); // angle from the pole
    const tilt = clamp(height - down, 0.01, Math.PI - 0.01) - height;
    let way = subtract(this.position, this.target);
    way = rotated(rotated(way, right, tilt), pole, -across);
    this.position = add(this.target, way);
    this.forget();
  }

  pan(dx, dy) {
    const { right, up } = this.axes;
    const move = add(scaled(right, -dx * this.pixelSize), up, dy * this.pixelSize);
    this.position = add(this.position, move);
    this.target = add(this.target, move);
    this.forget();
  }

  // Distance times a factor; what lies under a pixel at the target's depth stays there.
  zoom(factor, x = 0.5 * this.width, y = 0.5 * this.height) {
    const { right, up } = this.axes;
    const size = this.pixelSize * (1 - factor);
    const move = add(scaled(right, (x - 0.5 * this.width) * size), up, -(y - 0.5 * this.height) * size);
    const way = scaled(subtract(this.position, this.target), factor);
    this.target = add(this.target, move);
    this.position = add(this.target, way);
    this.forget();
  }

  roll(angle) {
    const { up, forward } = this.axes;
    this.up = rotated(up, forward, angle);
    this.forget();
  }

  // Turns about the target so that another direction is up, as high above it as before.
  turnUp(direction) {
    const [from, to] = [unit(this.up), unit(direction)];
    const angle = Math.acos(clamp(dot(from, to), -1, 1));
    if (angle > 1e-6) {
      const axis = angle > Math.PI - 1e-4 ? this.axes.right : unit(cross(from, to));
      const about = length(subtract(axis, scaled(from, dot(axis, from)))) < 1e-3 ? anyAcross(from) : axis;
      this.position = add(this.target, rotated(subtract(this.position, this.target), about, angle));
    }
    this.up = to;
    this.forget();
  }

  // Looks along a direction at a centre from so far that a ball about it fills the picture.
  lookAlong(direction, up, centre, radius) {
    const distance = this.orthographic ? this.distance : radius / Math.sin(0.5 * this.fov);
    this.target = centre;
    this.position = add(centre, unit(direction), -Math.max(distance, 1e-6));
    this.up = up;
    this.forget();
  }

  forget() {
    this.known = undefined;
  }
}

// Camera at a share of a flight that begins and ends gently.
function cameraOnFlight(from, to, share) {
  return share < 1 ? cameraBetween(from, to, share * share * (3 - 2 * share)) : to.copy();
}

// Camera between two: its target and the way to it turn and stretch evenly.
function cameraBetween(a, b, share) {
  const camera = b.copy();
  camera.target = between(a.target, b.target, share);
  camera.fov = (1 - share) * a.fov + share * b.fov;
  camera.up = unit(between(unit(a.axes.up), unit(b.axes.up), share));
  const from = subtract(a.position, a.target);
  const to = subtract(b.position, b.target);
  const way = turnedBetween(unit(from), unit(to), share);
  camera.position = add(camera.target, way, length(from) ** (1 - share) * length(to) ** share);
  camera.forget();
  return camera;
}

function turnedBetween(a, b, share) {
  const angle = Math.acos(clamp(dot(a, b), -1, 1));
  if (angle < 1e-6) return unit(between(a, b, share));
  const axis = angle > Math.PI - 1e-4 ? anyAcross(a) : unit(cross(a, b));
  return rotated(a, axis, share * angle);
}

// Camera of a data set as the page's: its frame fitted into the picture, its target at the depth of a point.
function cameraOfSet(given, like, centre) {
  const camera = like.copy();
  const depth = dot(subtract(centre, given.position), given.forward);
  const far = depth > 0 ? depth : length(subtract(centre, given.position)) || 1;
  const orthographic = Boolean(given.orthographic);
  Object.assign(camera, { position: [...given.position], up: [...given.up], orthographic });
  camera.target = add(given.position, given.forward, far);
  const across = Math.min(like.width, like.height * given.aspect); // pixels of its frame
  camera.fov = 2 * Math.atan((Math.min(like.width, like.height) / across) * (halfWidth(given, far) / far));
  camera.forget();
  return camera;
}

// Half the width that a camera of a data set sees so far ahead; that of parallel rays sees as much anywhere.
function halfWidth(given, depth) {
  return (given.orthographic ? 1 : depth) * Math.tan((0.5 * given.fov * Math.PI) / 180);
}
