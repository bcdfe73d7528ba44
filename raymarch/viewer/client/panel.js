// The panel beside the picture: its sections, in the order of their use.

class Panel {
  constructor(viewer, stage) {
    this.viewer = viewer;
    this.look = new LookPanel(viewer);
    this.region = new RegionPanel(viewer);
    this.cameras = new CamerasPanel(viewer, stage.compare);
    this.path = new PathPanel(viewer);
    this.view = new ViewPanel(viewer, this.look, this.path);
    this.fit = new FitPanel(viewer);
    stage.tableOf = () => this.look.editor.table;
    const sections = [
      this.fit.section,
      this.view.section,
      ...this.look.sections,
      ...this.region.sections,
      this.cameras.section,
      this.path.section,
    ];
    this.title = element("div", { class: "rm-title" });
    this.element = element("aside", { class: "rm-panel", aria: { label: "Settings" } }, this.title, ...sections);
    viewer.on("scene", (scene, first) => this.take(scene, first));
  }

  take(scene, first) {
    this.title.replaceChildren(element("strong", { text: scene.name || "Volume" }));
    const facts = [scene.shape?.join(" × "), sizeOf(scene)].filter(Boolean).join(" · ");
    this.title.append(element("span", { text: facts }));
    this.look.take(scene);
    this.view.take(scene);
    this.region.take(scene, first);
    this.cameras.take();
    this.path.video.hidden = !scene.video;
  }

  nextMode(way) {
    this.look.next(way);
  }
}

// Sides of the box with their unit, as "12 × 10 × 8 mm".
function sizeOf(scene) {
  const sides = subtract(scene.box[1], scene.box[0]).map((side) => short(side, 3));
  return [sides.join(" × "), scene.unit].filter(Boolean).join(" ");
}
