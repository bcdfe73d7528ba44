// Panel of a page: mode, table, value and window over the histogram, ground, clip box, cameras.

const MODE_WORDS = {
  "emission-absorption": "colour and density",
  additive: "additive",
  transfer: "transfer function",
  isosurface: "isosurface",
  maximum: "maximum",
  minimum: "minimum",
  average: "average",
  "x-ray": "X-ray",
};
const GROUNDS = { black: [0, 0, 0], white: [1, 1, 1], grey: [0.16, 0.18, 0.21] };

class PagePanel {
  constructor(viewer) {
    this.viewer = viewer;
    const { page } = viewer;
    const title = element("div", { class: "rm-title" }, element("strong", { text: page.title || "A volume" }));
    title.append(element("span", { text: viewer.sizeText() }));
    const look = section("Look", true, this.modeRow(), this.tablePart(), this.isoPart(), this.windowPart(), this.groundRow(), this.stepRow());
    this.element = element("div", { class: "rm-panel rm-over" }, title, look);
    this.element.setAttribute("role", "complementary");
    this.element.setAttribute("aria-label", "Look and cameras");
    if (page.box) this.element.append(section("Clip box", false, ...this.clipRows()));
    this.element.append(section("Views", true, ...this.viewRows()));
    this.show();
  }

  modeRow() {
    const modes = Object.keys(this.viewer.page.looks).map((mode) => [mode, MODE_WORDS[mode]]);
    this.modes = select(modes, this.viewer.mode, (mode) => this.viewer.setMode(mode), "Mode");
    return row("Mode", this.modes);
  }

  tablePart() {
    this.table = new TableEditor(this.viewer);
    const lit = element("input", { type: "checkbox", class: "rm-check", aria: { label: "Light" } });
    lit.addEventListener("change", () => this.viewer.light(lit.checked));
    this.lit = lit;
    this.tableRow = this.table.element;
    if (!this.viewer.page.volume.ndc) this.tableRow.append(row("Light", lit, "Light samples by the slope of their value"));
    return this.tableRow;
  }

  isoPart() {
    const { viewer } = this;
    const change = (iso, moving) => {
      this.iso.set(iso);
      this.isoSlider.set(iso);
      viewer.look({ iso }, moving);
    };
    this.iso = histogramLine(viewer, "Value of the surface", change);
    const [low, high] = viewer.scene.range;
    this.isoSlider = slider({ label: "Surface at", low, high, value: low, change });
    this.isoRow = element("div", {}, this.iso, this.isoSlider);
    return this.isoRow;
  }

  windowPart() {
    const change = (window, moving) => this.viewer.look({ window: window[0] < window[1] ? window : [window[0], window[0] + 1e-6] }, moving);
    this.window = rangeSlider({ label: "Window", title: "Values that are black and white", low: 0, high: 1, value: [0, 1], free: true, change });
    this.windowRow = element("div", {}, this.window);
    return this.windowRow;
  }

  groundRow() {
    const { viewer } = this;
    const swatches = element("div", { class: "rm-swatches" });
    const own = viewer.page.looks[viewer.mode].background;
    const others = Object.entries(GROUNDS).filter(([, colour]) => colour.join() !== own.map(Number).join());
    for (const [name, colour] of [["the volume's own", own], ...others]) {
      const pick = () => viewer.ground(colour);
      const swatch = element("button", { type: "button", class: "rm-swatch", title: `${name} background`, onclick: pick, aria: { label: `${name} background` } });
      swatch.style.background = cssOf(colour);
      swatches.append(swatch);
    }
    this.groundLine = element("div", { class: "rm-row" }, element("span", { class: "rm-label", text: "Background" }), swatches);
    return this.groundLine;
  }

  stepRow() {
    const change = (step, moving) => this.viewer.look({ step }, moving);
    this.step = slider({ label: "Step", title: "Length of a step of the rays [voxel]", low: 0.25, high: 2, value: 0.5, log: true, change });
    return this.step;
  }

  clipRows() {
    const { box } = this.viewer.page;
    this.clips = ["x", "y", "z"].map((name, axis) => {
      const change = (range, moving) => this.viewer.clip(axis, range, moving);
      return rangeSlider({ label: name, low: box[0][axis], high: box[1][axis], value: [box[0][axis], box[1][axis]], change });
    });
    const all = wordButton("All of it", "Take the clip box away", () => {
      this.clips.forEach((clip, axis) => {
        clip.set([box[0][axis], box[1][axis]]);
        this.viewer.clip(axis, [box[0][axis], box[1][axis]], false);
      });
    });
    return [...this.clips, element("div", { class: "rm-buttons" }, all)];
  }

  viewRows() {
    const { viewer } = this;
    const { cameras, path } = viewer.page;
    const fov = slider({ label: "Field of view", title: "Of the shorter side [degree]", low: 5, high: 110, value: 40, log: true, change: (degrees) => viewer.steer((camera) => (camera.fov = (degrees * Math.PI) / 180)) });
    this.fov = fov;
    this.play = wordButton(path.length ? "Play the path" : "Turn around", "Space plays and stops", () => viewer.play(), "play");
    const home = wordButton("Start", "Back to the first view (R)", () => viewer.home(), "home");
    const rows = [element("div", { class: "rm-buttons" }, this.play, home), fov];
    if (!cameras.length) return rows;
    const names = cameras.map((camera, i) => [i, `${i + 1} · ${camera.name}`]);
    this.cameras = select([["", "free view"], ...names], "", (i) => i !== "" && viewer.toCamera(Number(i)), "Camera of the set");
    const step = (name, title, way) => wordButton(name, title, () => viewer.nextCamera(way));
    const steps = element("div", { class: "rp-steps" }, step("‹", "The camera before (P)", -1), this.cameras, step("›", "Next camera (N)", 1));
    const shots = element("div", { class: "rm-grid" });
    cameras.forEach((camera, i) => {
      if (!camera.picture) return;
      const image = element("img", { alt: "", loading: "lazy" });
      image.setAttribute("src", camera.picture);
      const shot = element("button", { type: "button", class: "rm-shot", title: camera.name, onclick: () => viewer.toCamera(i), aria: { label: `Camera ${camera.name}` } });
      shot.append(image, element("b", { text: String(i + 1) }));
      shot.dataset.camera = i;
      shots.append(shot);
    });
    this.shots = shots;
    this.wipe = slider({ label: "Photograph", title: "How much of the photograph is shown (C)", low: 0, high: 1, value: 0, change: (share) => viewer.compare(share) });
    this.wipe.hidden = !cameras.some((camera) => camera.picture);
    return [...rows, steps, shots, this.wipe];
  }

  nextMode(way) {
    const modes = Object.keys(this.viewer.page.looks);
    this.viewer.setMode(modes[(modes.indexOf(this.viewer.mode) + way + modes.length) % modes.length]);
  }

  // The look as it is.
  show() {
    const { viewer } = this;
    const { mode } = viewer;
    const look = viewer.current;
    this.modes.value = mode;
    this.tableRow.hidden = mode !== "transfer";
    this.isoRow.hidden = mode !== "isosurface";
    this.windowRow.hidden = !look.window;
    this.groundLine.hidden = Boolean(look.window);
    if (mode === "transfer" && this.tableShown !== look.table) {
      this.tableShown = look.table;
      this.table.take(recordOfLook(look.table));
    }
    this.lit.checked = Boolean(look.shading);
    if (mode === "isosurface") {
      this.iso.set(look.iso);
      this.isoSlider.set(look.iso);
    }
    if (look.window) {
      const [low, high] = viewer.page.looks[mode].window;
      const wide = high - low;
      this.window.bounds(Math.min(low, viewer.scene.range[0] < 0 ? low - 0.5 * wide : low), high + 0.5 * wide);
      this.window.set(look.window);
    }
    this.step.set(look.step);
    this.fov.set((viewer.camera.fov * 180) / Math.PI);
    if (this.cameras) this.cameras.value = viewer.exact?.index ?? "";
    for (const shot of this.shots?.children ?? []) shot.classList.toggle("rm-on", Number(shot.dataset.camera) === viewer.exact?.index);
    this.play.querySelector("span").textContent = viewer.playing ? "Stop" : viewer.page.path.length ? "Play the path" : "Turn around";
  }
}
