// Picture: frames decoded and painted in the order they came, at rest each pixel as it is.

class Picture {
  constructor(viewer) {
    this.viewer = viewer;
    this.canvas = element("canvas", { class: "rm-picture", aria: { label: "Rendered picture" } });
    this.canvas.setAttribute("role", "img");
    this.drawing = this.canvas.getContext("2d", { alpha: false });
    this.shown = 0; // id of the newest camera of which a frame was painted
    this.frames = 0;
    this.times = [];
    this.final = false;
    this.queue = Promise.resolve();
  }

  // Takes another size [device pixel]; what was painted is stretched until a frame of that size comes.
  resize(width, height) {
    const { canvas, drawing } = this;
    if (canvas.width === width && canvas.height === height) return;
    const old = this.frames ? copyOf(canvas) : null;
    Object.assign(canvas, { width, height });
    if (!old) return;
    const factor = Math.max(width / old.width, height / old.height);
    const [w, h] = [old.width * factor, old.height * factor];
    drawing.drawImage(old, 0.5 * (width - w), 0.5 * (height - h), w, h);
  }

  take(header, bytes) {
    if (this.isPast(header)) return;
    const blob = new Blob([bytes], { type: `image/${header.format}` });
    // Not every browser knows these options.
    const asItIs = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
    const decoded = createImageBitmap(blob, asItIs).catch(() => createImageBitmap(blob));
    decoded.catch(() => {}); // it is awaited below, maybe later than it fails
    this.queue = this.queue
      .then(async () => this.paint(header, await decoded))
      .catch((error) => {
        this.viewer.say("error", `A frame could not be shown: ${error.message}`);
      });
  }

  // Whether a frame is of the past: of an older camera than what is seen, or less than was drawn here of that camera.
  isPast({ id, of, final, y = 0, x = 0, height }) {
    if (id === undefined) return false;
    const { moving, scene } = this.viewer;
    if (id < this.shown || id < moving.floor) return true;
    const part = x > 0 || y > 0 || (of && height < of[1]);
    return Boolean(this.here && !final && !part && !scene?.fit && of && of[0] < this.here);
  }

  // Shows what was marched here, stretched over the canvas.
  paintHere(marched) {
    const { canvas, drawing } = this;
    drawing.imageSmoothingEnabled = true;
    drawing.imageSmoothingQuality = "low";
    drawing.drawImage(marched, 0, 0, canvas.width, canvas.height);
    Object.assign(this, { final: false, here: marched.width, size: [marched.width, marched.height] });
  }

  paint(header, image) {
    if (this.isPast(header)) return image.close();
    this.here = 0; // pixels across of what was drawn here and is still seen
    const { canvas, drawing } = this;
    const [width, height] = header.of ?? [image.width, image.height];
    const [left, top, across, down] = this.place(header, width, height);
    const same = width === across && height === down;
    drawing.imageSmoothingEnabled = !same;
    drawing.imageSmoothingQuality = "medium";
    if (same) drawing.drawImage(image, left + (header.x ?? 0), top + (header.y ?? 0));
    else {
      const [sx, sy] = [across / width, down / height];
      const at = [left + (header.x ?? 0) * sx, top + (header.y ?? 0) * sy];
      drawing.drawImage(image, ...at, image.width * sx, image.height * sy);
    }
    image.close();
    this.shown = header.id ?? this.shown;
    this.final = Boolean(header.final);
    if (header.cover) this.cover = { ...header.cover, bytes: bytesOf(header.cover.data) };
    this.size = [width, height];
    this.frames += 1;
    const now = performance.now();
    this.times = [...this.times.filter((time) => now - time < 1000), now];
    this.viewer.tell("frame", header);
  }

  // Where a whole picture goes: over all of the canvas; that of a view of the data set as large as fits in its middle.
  place(header, width, height) {
    const { canvas, drawing, viewer } = this;
    const view = viewer.sender.sent.get(header.id)?.view ?? null;
    if (view === null) return [0, 0, canvas.width, canvas.height];
    const [left, top, across, down] = viewer.frusta.frame(view, canvas.width, canvas.height);
    if (!header.x && !header.y) drawing.fillRect(0, 0, canvas.width, canvas.height);
    const full = Math.abs(width - across) < 2;
    return full ? [left, top, width, height] : [left, top, across, down];
  }

  // How much of what lies behind the picture is covered at a place of it, in shares of its sides: 0..1.
  coverAt(u, v) {
    const { cover } = this;
    if (!cover || !(u >= 0 && u < 1 && v >= 0 && v < 1)) return 0;
    return cover.bytes[Math.floor(v * cover.height) * cover.width + Math.floor(u * cover.width)] / 255;
  }

  // Frames painted in the last second.
  get rate() {
    const now = performance.now();
    return this.times.filter((time) => now - time < 1000).length;
  }

  // Whether the picture's border is bright, so that marks on it have to be dark.
  get bright() {
    const { canvas } = this;
    this.few ??= element("canvas", { width: 8, height: 8 }).getContext("2d", { willReadFrequently: true });
    this.few.drawImage(canvas, 0, 0, 8, 8);
    const { data } = this.few.getImageData(0, 0, 8, 8);
    let sum = 0;
    for (let i = 0; i < 64; i++) {
      const border = i < 8 || i >= 56 || i % 8 === 0 || i % 8 === 7;
      if (border) sum += 0.3 * data[4 * i] + 0.6 * data[4 * i + 1] + 0.1 * data[4 * i + 2];
    }
    return sum / 28 > 140;
  }

  // A small copy of what is seen, as wide as asked.
  thumbnail(width) {
    const { canvas } = this;
    const height = Math.max(1, Math.round((width * canvas.height) / canvas.width));
    const made = element("canvas", { width, height });
    made.getContext("2d").drawImage(canvas, 0, 0, width, height);
    return made;
  }
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

function copyOf(canvas) {
  const made = element("canvas", { width: canvas.width, height: canvas.height });
  made.getContext("2d").drawImage(canvas, 0, 0);
  return made;
}
