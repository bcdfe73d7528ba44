// Cameras of a data set as frusta with their photographs, drawn over the picture.

class Frusta {
  constructor(viewer) {
    Object.assign(this, { viewer, cameras: [], shown: true, pictures: true, size: 1, hovered: null, chosen: null });
  }

  take(scene) {
    this.cameras = scene.cameras ?? [];
    this.depth = this.usual();
    const [low, high] = scene.box;
    this.centre = between(low, high, 0.5);
  }

  // Depth of a frustum: a part of the way to the nearest other camera, half of them nearer.
  usual() {
    const places = this.cameras.slice(0, 200).map((camera) => camera.position);
    const nearest = places.map((p) => Math.min(...places.filter((q) => q !== p).map((q) => length(subtract(p, q)))));
    const sorted = nearest.filter((d) => d > 0 && Number.isFinite(d)).sort((a, b) => a - b);
    const box = this.viewer.scene.box;
    return Math.min(0.4 * (sorted[sorted.length >> 1] ?? Infinity), 0.15 * length(subtract(box[1], box[0])));
  }

  // Left, top, width and height of a camera's picture in the middle of a larger one, as large as fits.
  frame(index, width, height) {
    const given = this.cameras[index];
    const factor = Math.min(width / given.width, height / given.height);
    const [w, h] = [Math.round(given.width * factor), Math.round(given.height * factor)];
    return [Math.floor((width - w) / 2), Math.floor((height - h) / 2), w, h];
  }

  // Corners of a camera's picture in a plane of the world so far ahead, from the top left, clockwise.
  corners(camera, depth) {
    const half = halfWidth(camera, depth);
    const middle = add(camera.position, camera.forward, depth);
    const at = (sx, sy) => add(add(middle, camera.right, sx * half), camera.up, (sy * half) / camera.aspect);
    return [at(-1, 1), at(1, 1), at(1, -1), at(-1, -1)];
  }

  // `hidden` says how much of a point is.
  draw(drawing, camera, hidden = () => 0) {
    this.seen = [];
    if (!this.shown) return;
    const all = this.cameras.map((each, i) => ({ each, i, at: camera.project(each.position) }));
    for (const { each, i, at } of all.filter((one) => one.at[2] > 0).sort((a, b) => b.at[2] - a.at[2])) {
      if (length(subtract(each.position, camera.position)) < 1.2 * this.depth * this.size) continue; // we are in it
      this.seen.push([i, at[0], at[1]]);
      this.drawOne(drawing, camera, each, i, hidden);
    }
  }

  drawOne(drawing, camera, given, i, hidden) {
    const ring = this.corners(given, this.depth * this.size);
    const base = this.corners(given, 0);
    const pixels = ring.map((point) => camera.project(point));
    const marked = i === this.hovered || i === this.chosen;
    const photo = this.pictures || marked ? this.viewer.photos.get(i) : null;
    const middle = add(given.position, given.forward, 0.5 * this.depth * this.size);
    const seen = marked ? 1 : Math.max(1 - hidden(middle), FAINTEST);
    drawing.globalAlpha = seen;
    if (photo && pixels.every((pixel) => pixel[2] > 0)) drawQuad(drawing, photo, pixels);
    const colour = given.split === "train" || !given.split ? "#f2b84b" : "#c297ff";
    drawing.strokeStyle = i === this.chosen ? "#66b0ff" : i === this.hovered ? "#ffffff" : colour;
    drawing.lineWidth = marked ? 2 : 1;
    drawing.globalAlpha = marked ? 1 : 0.75 * seen;
    ring.forEach((point, k) => {
      strokeSegment(drawing, camera, point, ring[(k + 1) % 4]);
      strokeSegment(drawing, camera, base[k], point);
    });
    drawing.globalAlpha = 1;
  }

  // Index of the camera whose frustum begins near a pixel, or null.
  at(x, y) {
    let [best, least] = [null, 16];
    for (const [i, px, py] of this.seen ?? []) {
      const off = Math.hypot(px - x, py - y);
      if (off < least) [best, least] = [i, off];
    }
    return best;
  }
}

// An image on four corners of the screen: as one corner's parallelogram has it, then the other half as its own has it.
function drawQuad(drawing, image, [a, b, c, d]) {
  const { width, height } = image;
  const part = (from, to, side) => [(to[0] - from[0]) / side, (to[1] - from[1]) / side];
  drawPart(drawing, image, [a, b, c, d], part(a, b, width), part(a, d, height), a);
  const across = part(d, c, width);
  const down = part(b, c, height);
  const start = [0, 1].map((k) => c[k] - width * across[k] - height * down[k]);
  drawPart(drawing, image, [b, c, d], across, down, start);
}

function drawPart(drawing, image, corners, across, down, start) {
  drawing.save();
  drawing.beginPath();
  corners.forEach((p) => drawing.lineTo(p[0], p[1]));
  drawing.clip();
  drawing.transform(across[0], across[1], down[0], down[1], start[0], start[1]);
  drawing.drawImage(image, 0, 0);
  drawing.restore();
}
