// Comparison of the picture with a photograph: the photograph left of a line that is dragged.

class Compare {
  constructor(viewer, stage) {
    Object.assign(this, { viewer, stage, index: null, share: 0.5 });
    this.canvas = element("canvas", { class: "rm-photo", hidden: true, aria: { label: "Photograph" } });
    this.line = element("div", { class: "rm-split rm-over", hidden: true, tabIndex: 0, title: "Drag to compare" });
    this.line.setAttribute("role", "slider");
    this.line.setAttribute("aria-label", "Photograph to the left, picture to the right");
    this.names = element("div", { class: "rm-names", hidden: true });
    this.names.append(element("span", { text: "photograph" }), element("span", { text: "rendered" }));
    this.line.append(element("i"));
    this.line.addEventListener("pointerdown", (event) => {
      this.line.setPointerCapture(event.pointerId);
      event.preventDefault();
      event.stopPropagation();
    });
    this.line.addEventListener("pointermove", (event) => {
      if (!this.line.hasPointerCapture(event.pointerId)) return;
      const box = stage.getBoundingClientRect();
      this.split((event.clientX - box.left) / box.width);
    });
    this.line.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!way) return;
      event.preventDefault();
      this.split(this.share + 0.02 * way);
    });
    viewer.on("photo", (index) => index === this.index && this.draw());
    viewer.on("steer", () => this.end());
  }

  begin(index) {
    this.index = this.viewer.view = index;
    const { camera } = this.viewer;
    this.viewer.photos.wantLarge(index, this.viewer.frusta.frame(index, camera.width, camera.height)[2]);
    this.viewer.moved(false);
    for (const part of [this.canvas, this.line, this.names]) part.hidden = false;
    this.draw();
    this.viewer.tell("compare", index);
  }

  end() {
    if (this.index === null) return;
    this.index = this.viewer.view = null;
    this.viewer.moved(false);
    for (const part of [this.canvas, this.line, this.names]) part.hidden = true;
    this.viewer.tell("compare", null);
  }

  split(share) {
    this.share = clamp(share, 0, 1);
    this.draw();
  }

  draw() {
    if (this.index === null) return;
    const { camera, frusta } = this.viewer;
    const ratio = camera.width / this.stage.clientWidth;
    const pixels = frusta.frame(this.index, camera.width, camera.height);
    const [left, top, width, height] = pixels.map((side) => side / ratio);
    const { canvas, line, names } = this;
    const at = this.share * this.stage.clientWidth;
    Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    canvas.style.clipPath = `inset(0 ${clamp(left + width - at, 0, width)}px 0 0)`;
    line.style.left = names.style.left = `${at}px`;
    line.setAttribute("aria-valuenow", Math.round(100 * this.share));
    const image = this.viewer.photos.large?.image;
    if (!image) return;
    Object.assign(canvas, { width: pixels[2], height: pixels[3] });
    const drawing = canvas.getContext("2d");
    drawing.imageSmoothingQuality = "high";
    drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
  }
}
