// Panel of the look: mode, what is shown, step, exposure, background; surface; window; table.

const MODE_NAMES = {
  "emission-absorption": "Emission and absorption",
  additive: "Additive",
  "x-ray": "X-ray",
  transfer: "Transfer function",
  maximum: "Maximum (MIP)",
  minimum: "Minimum",
  average: "Average",
  isosurface: "Isosurface",
  "x-ray-exact": "X-ray, exact",
  "x-ray-joseph": "X-ray, Joseph",
};
const OUTPUTS = [
  ["image", "Image"],
  ["depth", "Depth"],
  ["opacity", "Opacity"],
  ["normals", "Normals"],
];
const BACKGROUNDS = ["#000000", "#1b1e24", "#808080", "#ffffff"];

class LookPanel {
  constructor(viewer) {
    this.viewer = viewer;
    this.lit = {}; // by mode, where it was chosen
    this.editor = new TableEditor(viewer);
    const send = (name) => (value, moving) => viewer.look({ [name]: value }, moving);
    this.mode = select([], "", (mode) => this.setMode(mode), "Mode");
    this.output = select(
      OUTPUTS,
      "image",
      (extras) => {
        viewer.look({ extras });
        this.fit();
      },
      "Output",
    );
    this.step = slider({
      label: "Step",
      title: "Length of a step in voxels: shorter is slower and finer",
      low: 0.05,
      high: 8,
      value: 0.5,
      log: true,
      change: send("step"),
    });
    this.exposure = slider({
      label: "Exposure",
      title: "Stops: each doubles the brightness",
      low: -5,
      high: 5,
      value: 0,
      change: send("exposure"),
    });
    this.shading = element("input", { type: "checkbox", class: "rm-check" });
    this.shading.addEventListener("change", () => {
      this.lit[viewer.lookNow.mode] = this.shading.checked;
      viewer.look({ shading: this.shading.checked });
    });
    this.shadingRow = row("Shading", this.shading, "Light from the camera, by the slope of the values");
    this.lineIso = histogramLine(viewer, "Value of the surface", (iso, moving) => this.setIso(iso, moving));
    this.iso = slider({
      label: "Value",
      low: 0,
      high: 1,
      value: 0,
      free: true,
      doubt: (iso) => this.outside(iso),
      change: (iso, moving) => this.setIso(iso, moving),
    });
    this.window = rangeSlider({ label: "Window", low: 0, high: 1, value: [0, 1], free: true, change: send("window") });
    this.auto = wordButton("Automatic", "Black and white by the picture itself", () => {
      viewer.look({ window: null });
    });
    viewer.on("frame", (frame) => this.shown(frame));
    viewer.on("look", (change) => "slice" in change && this.fit());
    this.sections = [
      (this.section = section(
        "Look",
        true,
        row("Mode", this.mode),
        row("Show", this.output),
        this.shadingRow,
        this.step,
        this.exposure,
        this.background(),
      )),
      (this.tableSection = section("Transfer function", true, this.editor.element)),
      (this.isoSection = section("Surface", true, this.lineIso, this.iso)),
      (this.windowSection = section("Window", true, this.window, element("div", { class: "rm-buttons" }, this.auto))),
    ];
  }

  background() {
    const { viewer } = this;
    const send = (moving) => viewer.look({ background: colourOf(this.colour.value) }, moving);
    const own = element("button", {
      class: "rm-swatch rm-own",
      type: "button",
      text: "own",
      title: "The volume's own",
    });
    own.addEventListener("click", () => viewer.look({ background: null }));
    this.colour = element("input", { type: "color", class: "rm-colour", aria: { label: "Background" } });
    this.colour.addEventListener("input", () => send(true));
    this.colour.addEventListener("change", () => send(false));
    const swatches = BACKGROUNDS.map((hex) => {
      const press = () => {
        this.colour.value = hex;
        send(false);
      };
      const made = element("button", {
        class: "rm-swatch",
        type: "button",
        title: hex,
        onclick: press,
        aria: { label: `Background ${hex}` },
      });
      made.style.background = hex;
      return made;
    });
    const label = element("span", { class: "rm-label", text: "Background" });
    return element(
      "div",
      { class: "rm-row" },
      label,
      element("span", { class: "rm-swatches" }, own, ...swatches, this.colour),
    );
  }

  take(scene) {
    const { lookNow } = this.viewer;
    const [low, high] = scene.range ?? [0, 1];
    this.mode.replaceChildren(
      ...scene.modes.map(({ name }) => element("option", { value: name, text: MODE_NAMES[name] ?? name })),
    );
    this.mode.value = lookNow.mode;
    this.output.value = lookNow.extras ?? "image";
    this.step.set(lookNow.step ?? 0.5);
    this.exposure.set(lookNow.exposure ?? 0);
    this.shading.checked = Boolean(lookNow.shading);
    if (Array.isArray(lookNow.background)) this.colour.value = hexOf(lookNow.background);
    this.iso.bounds(low, high);
    this.iso.set(lookNow.iso ?? 0.5 * (low + high));
    this.lineIso.set(this.iso.value);
    this.setWindow(low, high);
    if (lookNow.table && !this.viewer.edited.table) this.editor.take(lookNow.table);
    this.fit();
  }

  // Takes a preset's look.
  use(look) {
    const { viewer } = this;
    const shading = look.shading ?? Boolean(viewer.scene.modes.find(({ name }) => name === look.mode)?.iso);
    this.lit[look.mode] = shading;
    viewer.look({ ...look, shading });
    this.take(viewer.scene);
    if (look.table) this.editor.shown(look.table);
    viewer.tell("redraw");
  }

  setMode(mode) {
    this.mode.value = mode;
    const rule = this.viewer.scene.modes.find((each) => each.name === mode);
    const shading = this.lit[mode] ?? Boolean(rule.iso); // a surface is lit, as rm.render does it
    this.shading.checked = shading;
    this.viewer.look({ mode, ...(rule.shading ? { shading } : {}) });
    this.fit();
  }

  next(way) {
    const names = this.viewer.scene.modes.map((mode) => mode.name);
    this.setMode(names[(names.indexOf(this.mode.value) + way + names.length) % names.length]);
  }

  // What there is to say of a value that the volume does not have.
  outside(iso) {
    const [low, high] = this.viewer.scene?.range ?? [-Infinity, Infinity];
    return iso >= low && iso <= high ? "" : `the values are ${short(low)} to ${short(high)}: no surface is at ${short(iso)}`;
  }

  setIso(iso, moving) {
    this.iso.set(iso);
    this.lineIso.set(iso);
    this.viewer.look({ iso }, moving);
  }

  // Shows what the mode has use for.
  fit() {
    const { mode, lookNow } = this.viewer;
    this.tableSection.hidden = !mode.table;
    this.isoSection.hidden = !mode.iso;
    this.windowSection.hidden = !((mode.values && this.output.value === "image") || (lookNow.slice && !mode.table));
    this.shadingRow.hidden = !mode.shading;
    this.output.querySelector("[value=normals]").hidden = !mode.normals;
    if (mode.normals || this.output.value !== "normals") return;
    this.output.value = "image";
    this.viewer.look({ extras: "image" });
  }

  // Bounds of the window, by values of the volume or by what the frames say that they show.
  setWindow(low, high) {
    const { window } = this.viewer.lookNow;
    const room = 0.25 * (high - low);
    if (window) [low, high] = [Math.min(low, window[0]), Math.max(high, window[1])];
    this.window.bounds(low - room, high + room);
    this.window.set(window ?? [low, high]);
  }

  // A frame's own window, while none is chosen.
  shown(frame) {
    if (this.viewer.lookNow.window || !frame.window) return;
    const [low, high] = frame.window.map((value) => tidy(value, frame.window[1] - frame.window[0]));
    if (low !== this.window.value[0] || high !== this.window.value[1]) this.setWindow(low, high);
  }
}
