// Camera path: keyframes { camera, thumb, time }, what lies between them, and how files and messages have them.

// Camera at a share 0..1 of the path: Catmull-Rom splines of place, target and up through the keyframes.
function pathAt(keys, share, loops) {
  const parts = loops ? keys.length : keys.length - 1;
  const place = clamp(share, 0, 1) * parts;
  const i = Math.min(Math.floor(place), parts - 1);
  const pick = (k) => keys[loops ? (k + keys.length) % keys.length : clamp(k, 0, keys.length - 1)].camera;
  const four = [i - 1, i, i + 1, i + 2].map(pick);
  const along = (read) => spline(four.map(read), place - i);
  const camera = four[1].copy();
  for (const name of ["position", "target", "up"]) camera[name] = along((one) => one[name]);
  [camera.fov] = along((one) => [one.fov]);
  camera.up = unit(camera.up);
  camera.forget();
  return camera;
}

function spline([a, b, c, d], t) {
  return b.map((from, k) => {
    const [out, into] = [0.5 * (c[k] - a[k]), 0.5 * (d[k] - from)];
    const gap = c[k] - from;
    return from + t * (out + t * (3 * gap - 2 * out - into + t * (out + into - 2 * gap)));
  });
}

// Eight keyframes once around what a camera looks at.
function turntable(like) {
  return [0, 1, 2, 3, 4, 5, 6, 7].map((i) => {
    const camera = like.copy();
    camera.orbit((i * Math.PI) / 4, 0);
    return { camera, thumb: null };
  });
}

// Keyframes as a list of cameras with their times [s], for pictures of the size of a camera's.
function recordOfPath(keys, seconds, loops, like) {
  const parts = loops ? keys.length : Math.max(keys.length - 1, 1);
  const { width, height } = like;
  return keys.map(({ camera }, i) => {
    const message = Object.assign(camera.copy(), { width, height }).message();
    return { ...message, time: (i * seconds) / parts };
  });
}

// A camera as a line of Python; `pixels` has width and height.
function pythonOf(camera, pixels) {
  const { position, target, up, fov, orthographic, width, height } = Object.assign(camera.copy(), pixels).message();
  const three = (vector) => `(${vector.map((v) => Number(v.toPrecision(9))).join(", ")})`;
  const size = `width=${width}, height=${height}`;
  const half = Math.tan((fov * Math.PI) / 360);
  const lens = orthographic ? `size=${2 * camera.distance * half}` : `fov=${2 * Math.atan(half)}`;
  const make = orthographic ? "orthographic" : "look_at";
  return `rm.Camera.${make}(${[position, target, up].map(three).join(", ")}, ${lens}, ${size})`;
}

// Keyframes of a list of cameras as messages have them; of a mapping, the list that it has.
function keysOf(given, like) {
  const list = Array.isArray(given) ? given : (given?.cameras ?? given?.keys);
  if (!Array.isArray(list) || list.length < 2) throw new Error("want a list of two or more cameras");
  return list.map((key, i) => {
    const three = (name) => Array.isArray(key?.[name]) && key[name].length === 3 && key[name].every(Number.isFinite);
    if (!three("position") || !three("target")) throw new Error(`camera ${i + 1} has no position and target`);
    const camera = like.copy();
    camera.take(key);
    const [width, height] = [key.width ?? 512, key.height ?? 512];
    const focal = (0.5 * width) / Math.tan((0.5 * (key.fov ?? 40) * Math.PI) / 180);
    camera.fov = 2 * Math.atan((0.5 * Math.min(width, height)) / focal);
    camera.forget();
    return { camera, thumb: null, time: key.time };
  });
}
