// Panel of a data set's cameras: their photographs, flights to them, comparison.

class CamerasPanel {
  constructor(viewer, compare) {
    Object.assign(this, { viewer, compare, items: [], chosen: null });
    const { frusta } = viewer;
    const redraw = () => viewer.tell("redraw");
    this.pictures = element("input", { type: "checkbox", class: "rm-check", checked: true });
    this.pictures.addEventListener("change", () => {
      frusta.pictures = this.pictures.checked;
      redraw();
    });
    this.size = slider({
      label: "Size",
      low: 0.1,
      high: 5,
      value: 1,
      log: true,
      change: (size) => {
        frusta.size = size;
        redraw();
      },
    });
    this.grid = element("div", { class: "rm-grid" });
    this.name = element("div", { class: "rm-note" });
    this.flyButton = wordButton("Fly to", "Fly to the chosen camera", () => this.fly(this.chosen), "camera");
    this.compareButton = wordButton(
      "Compare",
      "Compare the picture with the photograph",
      () => this.comparing(),
      "compare",
    );
    const buttons = element("div", { class: "rm-buttons" }, this.flyButton, this.compareButton);
    this.section = section(
      "Cameras",
      true,
      row("Photographs", this.pictures),
      this.size,
      this.name,
      buttons,
      this.grid,
    );
    this.watch = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) viewer.photos.want(entry.target.index);
    });
    viewer.on("photo", (index) => this.paint(index));
    viewer.on("choose", (index) => this.choose(index));
    viewer.on("flyto", (index) => this.fly(index));
    viewer.on("compare", (index) => this.compareButton.classList.toggle("rm-on", index !== null));
    this.choose(null);
  }

  take() {
    const { cameras } = this.viewer.frusta;
    this.section.hidden = !cameras.length;
    if (this.items.length === cameras.length) return;
    this.watch.disconnect();
    this.items = cameras.map((camera, index) => {
      const picture = element("canvas", { width: 80, height: Math.max(1, Math.round(80 / camera.aspect)) });
      const title = camera.split ? `${camera.name} (${camera.split})` : camera.name;
      const made = element(
        "button",
        { class: "rm-shot", type: "button", title, aria: { label: `Camera ${camera.name}` } },
        picture,
      );
      Object.assign(made, { index, picture });
      made.addEventListener("click", () => this.choose(index));
      made.addEventListener("dblclick", () => this.fly(index));
      this.watch.observe(made);
      return made;
    });
    this.grid.replaceChildren(...this.items);
    for (const index of this.viewer.photos.small.keys()) this.paint(index);
    this.choose(null);
  }

  paint(index) {
    const item = this.items[index];
    const image = this.viewer.photos.small.get(index);
    if (!item || !image) return;
    Object.assign(item.picture, { width: image.width, height: image.height });
    item.picture.getContext("2d").drawImage(image, 0, 0);
  }

  choose(index) {
    this.items[this.chosen]?.classList.remove("rm-on");
    this.chosen = index;
    this.viewer.frusta.chosen = index;
    const item = this.items[index];
    item?.classList.add("rm-on");
    item?.scrollIntoView({ block: "nearest" });
    this.flyButton.disabled = this.compareButton.disabled = index === null;
    const many = `${this.items.length} cameras; choose one here or in the picture`;
    this.name.textContent = item ? item.title : many;
    if (index === null) this.compare.end();
    this.viewer.tell("redraw");
  }

  fly(index, then) {
    const given = this.viewer.frusta.cameras[index];
    if (!given) return;
    this.compare.end();
    this.choose(index);
    this.viewer.fly(cameraOfSet(given, this.viewer.camera, this.viewer.centre), then);
  }

  comparing() {
    const { index } = this.compare;
    if (index !== null) return this.compare.end();
    const wanted = this.chosen;
    this.fly(wanted, () => this.compare.begin(wanted));
  }

  // The next camera, or the one before; a comparison goes on there.
  next(way) {
    const count = this.items.length;
    if (!count) return;
    const index = this.chosen === null ? 0 : (this.chosen + way + count) % count;
    const compares = this.compare.index !== null;
    this.fly(index, () => compares && this.compare.begin(index));
  }
}
