// The picture with all that lies over it: marks, tools, cameras' cards, messages, help.

const MOST_SIDE = 4096; // pixels of a picture

class Stage {
  constructor(viewer, page) {
    Object.assign(this, { viewer, page, ink: INKS.dark });
    this.overlay = sharpCanvas("rm-overlay", "Marks over the picture", () => this.draw());
    this.overlay.setAttribute("aria-hidden", "true");
    this.element = element("div", {
      class: "rm-stage",
      tabIndex: 0,
      aria: { label: "Picture: drag to orbit, ? for help" },
    });
    this.element.setAttribute("role", "application");
    this.element.moving = viewer.moving; // for tests, and for whoever scripts the page
    this.compare = new Compare(viewer, this.element);
    this.card = element("div", { class: "rm-thumb", hidden: true });
    this.probe = new Probe(viewer, this.element);
    this.legend = new Legend(viewer, () => this.tableOf?.() ?? null);
    this.hintBox = element("div", {
      class: "rm-hint",
      hidden: true,
      text: "Click the picture first, then the wheel zooms",
    });
    this.helpBox = helpCard(() => this.help(false));
    this.wait = element("div", { class: "rm-wait" }, element("i"), element("span", { text: "Opening …" }));
    const { compare } = this;
    this.element.append(
      viewer.picture.canvas,
      compare.canvas,
      this.overlay,
      compare.line,
      compare.names,
      toolBar(this),
    );
    this.element.append(this.legend.canvas, this.probe.chip);
    this.element.append(axisCross(viewer), this.card, this.hintBox, this.wait, messageList(viewer), this.helpBox);
    this.listen();
  }

  listen() {
    const { viewer } = this;
    const soon = () => {
      this.waiting ??= requestAnimationFrame(() => {
        this.waiting = null;
        this.draw();
      });
    };
    viewer.on("camera", () => {
      this.toggles.flat.set(viewer.camera.orthographic, true);
      this.element.dataset.settled = false;
      if (!(viewer.sender.moving && viewer.moving.draws)) soon();
    });
    viewer.on("drawn", ({ frames, rate, share }) => {
      Object.assign(this.element.dataset, { here: frames, rate: rate.toFixed(1), share, settled: false });
      this.sliceFrame = null;
      this.element.classList.remove("rm-flat");
      this.overlay.hidden = viewer.moving.withoutMarks;
      if (!this.overlay.hidden) this.draw(); // marks with the picture that they are of
    });
    viewer.on("drawing", () => (this.element.dataset.drawing = viewer.moving.state));
    for (const event of ["frame", "look", "photo", "redraw"]) viewer.on(event, soon);
    viewer.on("scene", (scene) => {
      this.toggles.cameras.hidden = !viewer.frusta.cameras.length;
      this.toggles.flat.set(viewer.camera.orthographic, true);
      this.wait.lastChild.textContent = `Rendering ${scene.name ?? ""} …`;
      soon();
    });
    viewer.on("frame", (frame) => {
      this.sliceFrame = frame.slice ?? null;
      this.overlay.hidden = false;
      this.element.classList.toggle("rm-flat", Boolean(frame.slice));
      this.wait.hidden = true;
      if (!frame.y && !frame.x) this.ink = viewer.picture.bright ? INKS.bright : INKS.dark;
      const { dataset } = this.element;
      Object.assign(dataset, { frames: viewer.picture.frames, shown: viewer.picture.shown, sent: viewer.sender.id });
      dataset.settled = viewer.sender.settled;
    });
    viewer.on("sent", () => Object.assign(this.element.dataset, { sent: viewer.sender.id, settled: false }));
    viewer.on("message", () => this.wait.hidden || viewer.scene || (this.wait.lastChild.textContent = "Not yet …"));
    listenToPointers(viewer, this.element, {
      hover: (x, y, event) => this.hover(x, y, event),
      press: () => this.probe.move(null),
      click: (x, y) => this.click(x, y),
      double: (x, y) => this.double(x, y),
      wheels: () => this.page || this.element.contains(document.activeElement),
      hint: () => this.hint(),
    });
    this.observer = new ResizeObserver(([entry]) => this.resize(entry));
    try {
      this.observer.observe(this.element, { box: "device-pixel-content-box" });
    } catch {
      this.observer.observe(this.element); // a browser that does not know of device pixels
    }
  }

  resize(entry) {
    const ratio = window.devicePixelRatio || 1;
    const exact = entry.devicePixelContentBoxSize?.[0];
    const about = [this.element.clientWidth * ratio, this.element.clientHeight * ratio];
    const told = [exact?.inlineSize, exact?.blockSize]; // with rounding as the browser does it, where it knows
    const [width, height] = about.map((side, i) => (Math.abs(told[i] - side) < 2 ? told[i] : Math.round(side)));
    if (width < 16 || height < 16) return;
    const less = Math.min(1, MOST_SIDE / Math.max(width, height));
    this.viewer.resize(Math.round(width * less), Math.round(height * less));
    const { style } = this.viewer.picture.canvas;
    Object.assign(style, { width: `${width / ratio}px`, height: `${height / ratio}px` });
    this.compare.draw();
  }

  // The camera of the marks in CSS pixels.
  get camera() {
    const camera = this.viewer.sender.marksCamera.copy();
    Object.assign(camera, { width: this.element.clientWidth, height: this.element.clientHeight });
    camera.forget();
    return camera;
  }

  draw() {
    const { viewer, toggles } = this;
    const drawing = viewer.scene && cleared(this.overlay);
    if (!drawing) return;
    const { camera } = this;
    viewer.frusta.seen = [];
    if (viewer.view !== null) return; // a photograph is compared
    const { box, unit: unitName } = viewer.scene;
    const { clip, slice } = viewer.lookNow;
    if (slice && this.sliceFrame)
      return drawSliceMarks(drawing, this.element, box, this.sliceFrame, unitName, toggles, this.ink);
    const filled = clip?.lower ? overlap(box, [clip.lower, clip.upper]) : box;
    const hidden = hiddenBy(camera, viewer.picture, filled, 0.6);
    if (toggles.box.pressed) drawBox(drawing, camera, box, this.ink.line, hidden);
    if (clip?.lower) drawBox(drawing, camera, [clip.lower, clip.upper], "#66b0ff", hidden, 1.5);
    viewer.frusta.draw(drawing, camera, hiddenBy(camera, viewer.picture, filled));
    if (!toggles.axes.pressed) return;
    drawAxes(drawing, camera, box, unitName, this.ink, hidden);
    drawScale(drawing, camera, unitName, 16, this.element.clientHeight - 14, 0.18 * this.element.clientWidth, this.ink);
  }

  hover(x, y, event) {
    const { frusta } = this.viewer;
    const now = frusta.at(x, y);
    this.probe.move(event && now === null && !event.target.closest(".rm-over") ? [x, y] : null);
    if (now === frusta.hovered) return;
    frusta.hovered = now;
    this.element.style.cursor = now === null ? "" : "pointer";
    this.showCard(now ?? frusta.chosen);
    this.viewer.tell("redraw");
  }

  click(x, y) {
    const found = this.viewer.frusta.at(x, y);
    this.viewer.tell("choose", found);
  }

  double(x, y) {
    const found = this.viewer.frusta.at(x, y);
    if (found !== null) this.viewer.tell("flyto", found);
  }

  // A card with the photograph of a camera beside its frustum.
  showCard(index) {
    const { viewer, card } = this;
    const seen = viewer.frusta.seen?.find((one) => one[0] === index);
    card.hidden = !seen || index !== viewer.frusta.hovered;
    if (card.hidden) return;
    const image = viewer.photos.get(index);
    card.replaceChildren(...(image ? [canvasOf(image)] : []));
    card.append(element("span", { text: viewer.frusta.cameras[index].name }));
    card.style.left = `${clamp(seen[1] + 14, 8, this.element.clientWidth - 190)}px`;
    card.style.top = `${clamp(seen[2] + 14, 60, this.element.clientHeight - 170)}px`;
  }

  // Perspective or orthographic.
  flat(flip = true) {
    const { viewer } = this;
    const on = flip ? !viewer.camera.orthographic : this.toggles.flat.pressed;
    this.toggles.flat.set(on, true);
    viewer.steer((camera) => (camera.orthographic = on));
  }

  fullScreen() {
    const root = this.element.parentElement;
    if (document.fullscreenElement) document.exitFullscreen();
    else
      root.requestFullscreen?.().catch(() => this.viewer.say("note", "The browser does not allow full screen here."));
  }

  help(show = this.helpBox.hidden) {
    this.helpBox.hidden = !show;
    if (!show) this.element.focus({ preventScroll: true });
  }

  escape() {
    if (!this.helpBox.hidden) return this.help(false);
    this.compare.end();
    this.viewer.tell("choose", null);
  }

  hint() {
    this.hintBox.hidden = false;
    clearTimeout(this.hinted);
    this.hinted = setTimeout(() => (this.hintBox.hidden = true), 1200);
  }

  end() {
    this.observer.disconnect();
  }
}

// What two boxes have in common.
function overlap(a, b) {
  return [a[0].map((low, k) => Math.max(low, b[0][k])), a[1].map((high, k) => Math.min(high, b[1][k]))];
}

function canvasOf(image) {
  const made = element("canvas", { width: image.width, height: image.height });
  made.getContext("2d").drawImage(image, 0, 0);
  return made;
}
