// Panel of what is taken home: pictures, a camera path of keyframes, a video along it.

const SIZES = [
  ["1", "as shown"],
  ["2", "twice as shown"],
  ["1280x720", "1280 × 720"],
  ["1920x1080", "1920 × 1080"],
  ["3840x2160", "3840 × 2160"],
];

class PathPanel {
  constructor(viewer) {
    Object.assign(this, { viewer, keys: [], playing: null });
    this.size = select(SIZES, "1", () => {}, "Size of pictures and videos");
    const save = wordButton("Save picture", "A PNG, rendered at the size above (S)", () => this.savePicture(), "save");
    this.list = element("div", { class: "rm-grid" });
    this.seconds = slider({
      label: "Seconds",
      title: "Length of the whole path",
      low: 1,
      high: 60,
      value: 6,
      log: true,
      change() {},
    });
    this.loop = element("input", { type: "checkbox", class: "rm-check", title: "The end goes back to the beginning" });
    const add = wordButton("Add view", "A keyframe of this view (K)", () => this.add(), "plus");
    const turn = wordButton("Turntable", "A path once around", () => this.turntable(), "turn");
    this.playButton = wordButton("Play", "Play the path (space)", () => this.play(), "play");
    const clear = wordButton("Clear", "Remove all keyframes", () => this.set([]), "trash");
    const write = wordButton("Save path", "Save the keyframes as JSON", () => this.savePath(), "save");
    const read = wordButton(
      "Load path",
      "Load keyframes from a JSON file",
      () =>
        loadJson(
          (given) => this.load(given),
          (line) => viewer.say("error", line),
        ),
      "load",
    );
    this.video = wordButton("Make video", "Render the path as a video", () => this.saveVideo(), "film");
    this.done = element("progress", { class: "rm-progress", max: 1, value: 0, hidden: true });
    const buttons = (...all) => element("div", { class: "rm-buttons" }, ...all);
    this.section = section(
      "Picture, path, video",
      false,
      row("Size", this.size),
      buttons(save),
      this.list,
      buttons(add, turn, this.playButton),
      this.seconds,
      row("Loop", this.loop),
      buttons(write, read, clear),
      buttons(this.video),
      this.done,
    );
    viewer.on("save", () => this.savePicture());
    viewer.on("steer", () => this.halt());
    viewer.on("progress", (given) => this.progress(given));
    viewer.on("file", () => this.progress({ done: 1, of: 1 }));
    viewer.on("message", (kind) => kind === "error" && this.progress({ done: 1, of: 1 }));
    this.show();
  }

  // Width and height that were chosen; even ones, as videos want them.
  get pixels() {
    const { value } = this.size;
    const { width, height } = this.viewer.camera;
    const [w, h] = value.includes("x") ? value.split("x").map(Number) : [width * value, height * value];
    return { width: w, height: h };
  }

  savePicture() {
    const pixels = this.pixels;
    this.viewer.sender.flush(false); // the picture is of the last camera that was said
    const { fov } = Object.assign(this.viewer.camera.copy(), pixels).message(); // of the shorter side, as ever
    this.viewer.send({ type: "save", what: "picture", ...pixels, fov });
  }

  copy() {
    const { viewer } = this;
    toClipboard(pythonOf(viewer.camera, this.pixels), "The camera, as Python,", (...words) => viewer.say(...words));
  }

  add() {
    this.keys.push({ camera: this.viewer.camera.copy(), thumb: this.viewer.picture.thumbnail(80) });
    this.section.open = true;
    this.set(this.keys);
  }

  turntable() {
    const keys = turntable(this.viewer.camera);
    keys[0].thumb = this.viewer.picture.thumbnail(80);
    this.loop.checked = true;
    this.set(keys);
  }

  set(keys) {
    this.keys = keys;
    this.show();
    this.viewer.tell("redraw");
  }

  show() {
    const items = this.keys.map((key, i) => {
      const picture = key.thumb ?? element("canvas", { width: 80, height: 50 });
      const drop = iconButton("close", `Remove keyframe ${i + 1}`, (event) => {
        event.stopPropagation();
        this.set(this.keys.filter((other) => other !== key));
      });
      const made = element(
        "div",
        { class: "rm-shot", title: `Keyframe ${i + 1}: click to fly to it`, tabIndex: 0 },
        picture,
      );
      made.append(element("b", { text: i + 1 }), drop);
      made.setAttribute("role", "button");
      made.addEventListener("click", () => this.viewer.fly(key.camera.copy()));
      return made;
    });
    this.list.replaceChildren(...items);
    const few = this.keys.length < 2;
    this.playButton.disabled = this.video.disabled = few;
    this.playButton.lastChild.textContent = this.playing ? "Stop" : "Play";
  }

  play() {
    if (this.playing) return this.halt();
    if (this.keys.length < 2) return;
    this.viewer.tell("steer"); // a comparison ends
    this.viewer.stop();
    const start = performance.now();
    const frame = (now) => {
      const share = Math.max(0, now - start) / 1000 / this.seconds.value;
      const { width, height } = this.viewer.camera;
      const camera = pathAt(this.keys, this.loop.checked ? share % 1 : share, this.loop.checked);
      this.viewer.camera = Object.assign(camera, { width, height });
      this.viewer.moved(true);
      if (share >= 1 && !this.loop.checked) return this.halt();
      this.playing = requestAnimationFrame(frame);
    };
    this.playing = requestAnimationFrame(frame);
    this.show();
  }

  halt() {
    if (!this.playing) return;
    cancelAnimationFrame(this.playing);
    this.playing = null;
    this.show();
  }

  savePath() {
    const record = recordOfPath(this.keys, this.seconds.value, this.loop.checked, this.viewer.camera);
    if (this.loop.checked && record.length) record.push({ ...record[0], time: this.seconds.value }); // a file has no box to tick
    download("path.json", JSON.stringify(record, null, 1));
  }

  // Takes keyframes that were saved, with their times where they have some.
  load(given) {
    const keys = keysOf(given, this.viewer.camera);
    const last = keys[keys.length - 1].time;
    if (last > 0) this.seconds.set(last);
    this.loop.checked = false;
    this.set(keys);
  }

  saveVideo() {
    if (this.busy) return this.viewer.send({ type: "save", what: "cancel" });
    const { width, height } = this.pixels;
    const even = (side) => Math.max(2, 2 * Math.round(side / 2));
    const record = recordOfPath(this.keys, this.seconds.value, this.loop.checked, this.viewer.camera);
    const cameras = (this.loop.checked ? [...record, record[0]] : record).map(
      ({ width, height, time, ...camera }) => camera,
    );
    const sizes = { width: even(width), height: even(height), fps: 24 };
    this.viewer.send({ type: "save", what: "video", ...sizes, seconds: this.seconds.value, cameras });
    this.progress({ done: 0, of: 1 });
  }

  progress({ done, of }) {
    this.busy = done < of;
    this.done.hidden = !this.busy;
    Object.assign(this.done, { value: done, max: of || 1 });
    this.video.lastChild.textContent = this.busy ? "Stop video" : "Make video";
  }
}
