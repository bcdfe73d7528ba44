// A page that shows one volume: it unpacks it, marches it, and turns it by mouse, fingers and keys.

const PATH_SECONDS = 14; // of the path, and of one turn around
const NARROW_PAGE = 760; // CSS pixels under which the panel begins closed, over the picture
const MAX_RATIO = 2; // device pixels by CSS pixel that are drawn

class PageViewer {
  constructor(page, parts) {
    Object.assign(this, { page, parts, scene: page.scene, exact: null, playing: null, raymarcher: null, wiped: 0 });
    [this.mode] = Object.keys(page.looks);
    this.looks = structuredClone(page.looks);
    this.clips = null;
    this.camera = new ViewCamera();
    Object.assign(this.camera, { width: 1, height: 1 });
    this.home(true);
  }

  get current() {
    return this.looks[this.mode];
  }

  sizeText() {
    const { samples, of } = this.page.about;
    const text = samples.join(" × ");
    return samples.join() === of.join() ? `${text} samples` : `${text} of ${of.join(" × ")} samples`;
  }

  // --- Camera ---

  steer(change) {
    this.playing = null;
    if (this.exact) this.leave();
    change(this.camera);
    this.camera.forget();
    this.changed();
  }

  // From a camera of the set, or a path, to one that turns.
  leave() {
    this.camera = cameraOfRecord(this.exact.record, this.camera, this.page.centre, this.page.up);
    this.exact = null;
    this.compare(0);
  }

  home(quiet = false) {
    const first = this.page.cameras.length && sameCamera(this.page.cameras[0], this.page.start) ? 0 : null;
    this.exact = { record: this.page.start, index: first };
    this.playing = null;
    if (!quiet) this.changed();
  }

  toCamera(index) {
    this.playing = null;
    this.exact = { record: this.page.cameras[index], index };
    this.compare(this.wiped);
    this.changed();
  }

  nextCamera(way) {
    const { cameras } = this.page;
    if (!cameras.length) return;
    const now = this.exact?.index ?? (way > 0 ? -1 : 0);
    this.toCamera((now + way + cameras.length) % cameras.length);
  }

  play() {
    this.playing = this.playing ? null : { begun: performance.now(), last: performance.now() };
    if (this.playing && !this.page.path.length && this.exact) this.leave();
    this.changed();
  }

  // Moves a camera that moves by itself; whether one does.
  advance(now) {
    if (!this.playing) return false;
    const { path } = this.page;
    if (path.length) {
      const place = (((now - this.playing.begun) / 1000 / PATH_SECONDS) % 1) * (path.length - 1);
      const i = Math.min(Math.floor(place), path.length - 2);
      this.exact = { record: recordBetween(path[i], path[i + 1], place - i), index: null };
      this.compare(0);
    } else {
      this.camera.orbit((-(now - this.playing.last) / 1000 / PATH_SECONDS) * 2 * Math.PI, 0);
    }
    this.playing.last = now;
    return true;
  }

  // The camera that is drawn.
  record() {
    const { width, height } = this.camera;
    return this.exact ? reframed(this.exact.record, width, height) : recordOfCamera(this.camera);
  }

  parallel() {
    this.steer((camera) => (camera.orthographic = !camera.orthographic));
  }

  // --- Look ---

  setMode(mode) {
    this.mode = mode;
    this.apply(false);
    this.parts.panel?.show();
  }

  look(part, moving = false) {
    const own = part.table ? { ...part, table: lookOfRecord(part.table) } : part;
    if (part.step) for (const look of Object.values(this.looks)) look.step = part.step;
    if (own.table && this.parts.panel) this.parts.panel.tableShown = own.table;
    Object.assign(this.current, own);
    this.apply(moving);
  }

  light(on) {
    const usual = { ambient: 0.1, diffuse: 0.9, specular: 0.2, shininess: 20, lamp: null, colour: null, smooth: true };
    this.look({ shading: on ? (this.page.looks[this.mode].shading ?? usual) : null });
  }

  ground(colour) {
    for (const look of Object.values(this.looks)) look.background = colour;
    this.apply(false);
  }

  clip(axis, range, moving) {
    const { box } = this.page;
    this.clips ??= [0, 1, 2].map((i) => [box[0][i], box[1][i]]);
    this.clips[axis] = range;
    this.apply(moving);
  }

  // Planes of the look, and those of the clip box that cut anything.
  planes() {
    const { box } = this.page;
    const own = [...(this.current.planes ?? [])];
    this.clips?.forEach(([low, high], axis) => {
      const normal = (sign) => [0, 1, 2].map((i) => (i === axis ? sign : 0));
      if (low > box[0][axis]) own.push([...normal(1), low]);
      if (high < box[1][axis]) own.push([...normal(-1), -high]);
    });
    return own;
  }

  apply(moving) {
    if (!this.raymarcher) return;
    try {
      this.raymarcher.setLook({ ...this.current, mode: this.mode, planes: this.planes() });
    } catch (error) {
      return void this.say("error", error.message);
    }
    this.readsOf = null;
    this.loop.wake(!moving);
    this.loop.shown = moving ? this.loop.shown : 0;
  }

  // --- What is said ---

  changed() {
    this.parts.panel?.show();
    this.place();
    this.loop?.wake();
  }

  say(kind, text) {
    this.parts.say(kind, text);
  }

  failed(error) {
    this.say("error", error.message);
  }

  // What is shown is no longer what is meant.
  moved() {
    this.parts.stage.parentElement.dataset.settled = "false";
  }

  // A picture was drawn; at its finest at rest.
  drawn(fine) {
    this.parts.shown(fine);
  }

  // Shows a share of the photograph; where there is none to show, says why.
  compare(share) {
    this.wiped = share;
    this.place();
    this.whyNone?.remove();
    if (share > 0 && this.parts.photo.hidden) this.whyNone = this.parts.say("note", this.noPhotograph());
  }

  noPhotograph() {
    if (!this.page.cameras.some((camera) => camera.picture)) return "This page holds no photographs.";
    if (!Number.isInteger(this.exact?.index)) return "Photographs are shown where a camera of the set stands: choose one, or press N.";
    return "The page does not hold the photograph of this camera; it holds those that have a small picture in the panel.";
  }

  // The photograph, where it belongs.
  place() {
    const { photo, stage } = this.parts;
    const camera = this.page.cameras[this.exact?.index ?? -1];
    photo.hidden = !(camera?.picture && this.wiped > 0);
    if (this.parts.panel?.wipe) this.parts.panel.wipe.set(this.wiped);
    if (photo.hidden) return;
    if (photo.dataset.of !== camera.name) {
      photo.setAttribute("src", camera.picture);
      photo.dataset.of = camera.name;
    }
    const [left, top, width, height] = frameOf(camera, stage.clientWidth, stage.clientHeight);
    Object.assign(photo.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    photo.style.clipPath = `inset(0 ${100 * (1 - this.wiped)}% 0 0)`;
  }
}

function sameCamera(a, b) {
  return a.pose.every((one, i) => one === b.pose[i]) && a.width === b.width && a.focal[0] === b.focal[0];
}

// Builds the page into `root` of its record and the packed volume's text.
async function openPage(root, page, packed) {
  const canvas = element("canvas", { class: "rm-picture rp-canvas" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${page.title || "A volume"}, turned by drag, arrows or fingers`);
  const photo = element("img", { class: "rm-photo", alt: "Photograph of this camera", hidden: true });
  const still = root.querySelector(".rp-still");
  const messages = element("div", { class: "rm-messages" });
  messages.setAttribute("aria-live", "polite");
  const stage = element("div", { class: "rm-stage" }, still, canvas, photo, messages);
  const state = element("span", { class: "rm-state", text: "unpacking" });
  const dot = element("i", { class: "rm-dot rm-busy" });
  const about = element("span", { class: "rm-what" });
  const status = element("div", { class: "rm-status" }, dot, state, about);
  status.setAttribute("role", "status");
  const frame = element("div", { class: "rm-viewer rm-whole" }, stage, status);
  root.replaceChildren(frame);

  const say = (kind, text) => {
    const close = iconButton("close", "Close", () => line.remove());
    const line = element("div", { class: `rm-message${kind === "error" ? " rm-error" : ""} rm-over` }, element("span", { text }), close);
    messages.replaceChildren(line);
    return line;
  };
  const parts = { stage, photo, say };
  const viewer = new PageViewer(page, parts);
  const fail = (text) => {
    dot.className = "rm-dot rm-lost";
    state.textContent = "still picture";
    frame.classList.add("rp-stilled", "rm-bare");
    say("error", text);
  };

  const begun = performance.now();
  try {
    if (!document.createElement("canvas").getContext("webgl2")) throw new Error("this browser has no WebGL2");
    const volume = await unpackVolume(page.volume, bytesOfText(packed.textContent));
    packed.remove();
    viewer.raymarcher = new Raymarcher(canvas, volume);
  } catch (error) {
    fail(`This is a still picture: ${error.message}. Another browser, or its settings for graphics, may help.`);
    throw error;
  }
  viewer.loop = new DrawingLoop(viewer);
  const panel = new PagePanel(viewer);
  parts.panel = panel;
  frame.append(panel.element);

  parts.shown = (fine) => {
    if (!still.hidden) {
      still.hidden = true;
      viewer.firstPicture = performance.now() - begun;
      frame.dataset.shown = String(Math.round(performance.now()));
    }
    dot.className = `rm-dot ${fine ? "rm-settled" : "rm-busy"}`;
    frame.dataset.settled = String(fine);
    const rate = viewer.loop.rate;
    state.textContent = fine ? "at rest" : rate ? `${Math.round(rate)} pictures a second` : "drawing";
    if (fine && !viewer.readsOf) viewer.readsOf = viewer.raymarcher.readsOfRays(viewer.record());
    const reads = viewer.readsOf ? ` · ${Math.round(viewer.readsOf.mean)} texture reads a ray` : "";
    about.textContent = `${viewer.sizeText()} · ${page.volume.count.toLocaleString("en")} bricks · ${(page.about.bytes / 1e6).toFixed(1)} MB${reads}`;
  };

  const toggles = pageTools(viewer, stage, frame, panel, canvas);
  listenToPointers(viewer, stage, {
    press: () => {},
    hover: () => {},
    click: () => {},
    double: () => viewer.home(),
    wheels: () => true,
    hint: () => {},
  });
  listenToPageKeys(viewer, stage, toggles);
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault();
    viewer.loop.stopped = true;
    still.hidden = false;
    dot.className = "rm-dot rm-lost";
    state.textContent = "the GPU is gone";
    say("error", "The browser lost the GPU; the picture comes back when it does.");
  });
  canvas.addEventListener("webglcontextrestored", () => {
    messages.replaceChildren();
    viewer.raymarcher.prepare();
    viewer.loop = new DrawingLoop(viewer);
    viewer.apply(false);
  });
  const fit = () => {
    const ratio = Math.min(window.devicePixelRatio || 1, MAX_RATIO);
    const [width, height] = [stage.clientWidth, stage.clientHeight].map((n) => Math.max(Math.round(n * ratio), 1));
    if (viewer.camera.width === width && viewer.camera.height === height) return;
    Object.assign(viewer.camera, { width, height });
    viewer.camera.forget();
    const narrow = frame.clientWidth < NARROW_PAGE;
    if (narrow !== viewer.narrow) for (const name of ["rm-narrow", "rm-bare"]) frame.classList.toggle(name, narrow);
    viewer.narrow = narrow;
    viewer.changed();
  };
  viewer.apply(false);
  new ResizeObserver(fit).observe(stage);
  fit();
  stage.focus({ preventScroll: true });
  return viewer;
}

// Buttons over the picture, and what keys do; returns the actions.
function pageTools(viewer, stage, frame, panel, canvas) {
  const card = keysCard(() => (card.hidden = true));
  const actions = {
    home: () => viewer.home(),
    play: () => viewer.play(),
    nextMode: (way) => panel.nextMode(way),
    camera: (way) => viewer.nextCamera(way),
    photograph: () => viewer.compare(viewer.wiped > 0 ? 0 : 0.5),
    parallel: () => viewer.parallel(),
    panel: () => frame.classList.toggle("rm-bare"),
    full: () => (document.fullscreenElement ? document.exitFullscreen() : frame.requestFullscreen?.())?.catch?.(() => {}),
    help: () => (card.hidden = !card.hidden),
    close: () => (card.hidden = true),
    save: async () => {
      const seen = viewer.raymarcher.picture(viewer.record(), 2);
      const page = element("canvas", { width: seen.width, height: seen.height });
      page.getContext("2d").putImageData(new ImageData(seen.data, seen.width, seen.height), 0, 0);
      const blob = await new Promise((done) => page.toBlob(done, "image/png"));
      download("picture.png", await blob.arrayBuffer());
      viewer.loop.wake(true);
    },
  };
  const group = (...buttons) => element("div", { class: "rm-group rm-over" }, ...buttons);
  const tools = element(
    "div",
    { class: "rm-tools" },
    group(
      iconButton("home", "Back to the start (R)", actions.home),
      iconButton("play", "Play the path, or turn around (space)", actions.play),
      iconButton("perspective", "Perspective or parallel (O)", actions.parallel),
    ),
    group(
      iconButton("save", "Save the picture (S)", actions.save),
      iconButton("full", "Full screen (F)", actions.full),
      iconButton("help", "Keys (?)", actions.help),
      iconButton("panel", "The panel (T)", actions.panel),
    ),
  );
  stage.append(tools, card);
  return actions;
}

(() => {
  const root = document.querySelector("main");
  const page = JSON.parse(document.getElementById("page-record").textContent);
  const opened = openPage(root, page, document.getElementById("page-volume"));
  opened.catch(() => {}); // said on the page
  // For tests and for whoever scripts the page: exactly what a camera sees, { width, height, data }, RGBA.
  window.raymarch = {
    opened,
    picture: async (camera, look = null, side = undefined) => {
      const viewer = await opened;
      if (look) viewer.raymarcher.setLook({ planes: [], ...look });
      return viewer.raymarcher.picture(camera, side);
    },
    reads: async (camera) => (await opened).raymarcher.readsOfRays(camera),
  };
})();
