// Panel of the view: which way is up, presets of looks, the view as a command or as Python.

const UPS = [
  ["0,0,1", "+z"],
  ["0,0,-1", "−z"],
  ["0,1,0", "+y"],
  ["0,-1,0", "−y"],
  ["1,0,0", "+x"],
  ["-1,0,0", "−x"],
];

class ViewPanel {
  constructor(viewer, look, path) {
    Object.assign(this, { viewer, look, path });
    this.up = select([...UPS, ["", "tilted"]], "0,0,1", (value) => value && viewer.setUp(value.split(",").map(Number)), "Up");
    this.up.lastChild.disabled = true;
    this.preset = select([["", "choose …"]], "", (name) => this.use(name), "Preset");
    const command = wordButton(
      "Copy as a command",
      "Copy the raymarch command that makes this picture, at the size under Picture, path, video",
      () => this.command(),
      "copy",
    );
    const python = wordButton("Copy as Python", "Copy the camera as rm.Camera", () => path.copy(), "copy");
    this.section = section(
      "View",
      true,
      row("Up", this.up, "Axis of the world that is up in the picture; drags turn about it"),
      row("Preset", this.preset, "Mode, table and light together"),
      element("div", { class: "rm-buttons" }, command, python),
    );
    viewer.on("camera", () => this.show());
    viewer.on("look", (change) => ("mode" in change || "table" in change) && !this.using && (this.preset.value = ""));
    viewer.on("command", ({ text, notes }) => {
      toClipboard(text, "The command", (...words) => viewer.say(...words));
      for (const line of notes ?? []) viewer.say("note", `${line[0].toUpperCase()}${line.slice(1)}.`);
    });
  }

  take(scene) {
    this.presets = scene.fit ? {} : presetsOf(scene);
    const chosen = this.preset.value;
    const names = Object.keys(this.presets);
    this.preset.replaceChildren(
      ...["", ...names].map((name) => element("option", { value: name, text: name || "choose …" })),
    );
    this.preset.value = names.includes(chosen) ? chosen : "";
    this.preset.parentElement.hidden = !names.length;
    this.show();
  }

  show() {
    const up = unit(this.viewer.camera.up);
    const near = UPS.find(([value]) => dot(value.split(",").map(Number), up) > 0.9999);
    this.up.value = near?.[0] ?? "";
  }

  nextUp(way) {
    const i = UPS.findIndex(([value]) => value === this.up.value);
    this.viewer.setUp(UPS[(i + way + UPS.length) % UPS.length][0].split(",").map(Number));
  }

  use(name) {
    if (!this.presets[name]) return;
    this.using = true;
    this.look.use(this.presets[name]);
    this.using = false;
  }

  command() {
    const pixels = this.path.pixels;
    this.viewer.sender.flush(false); // the command is of the last camera that was said
    const { fov } = Object.assign(this.viewer.camera.copy(), pixels).message();
    this.viewer.send({ type: "command", ...pixels, fov });
  }
}
