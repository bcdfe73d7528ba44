// Transfer function editor: points of opacity and stops of colour are dragged, added by a click, removed by a double one.

class TableEditor {
  constructor(viewer) {
    this.viewer = viewer;
    this.table = null;
    this.canvas = sharpCanvas("rm-table", "Transfer function: opacity over value", () => this.draw());
    this.canvas.tabIndex = 0;
    this.canvas.title = "Drag a point; click to add one; double click or right click to remove it; wheel to zoom";
    this.low = element("span");
    this.high = element("span");
    const ends = element("div", { class: "rm-ends" }, this.low, element("span", { text: "value" }), this.high);
    this.element = element("div", {}, this.canvas, ends, this.knotRow(), this.presetRow(), this.lengthRow(), this.fileRow());
    this.listen();
  }

  knotRow() {
    const change = () => this.typed();
    this.valueBox = numberInput("Value of the knot");
    this.opacityBox = numberInput("Opacity of the knot");
    this.colourBox = element("input", { type: "color", class: "rm-colour", aria: { label: "Colour of the knot" } });
    this.valueBox.addEventListener("change", change);
    this.opacityBox.addEventListener("change", change);
    this.colourBox.addEventListener("input", () => this.coloured(true));
    this.colourBox.addEventListener("change", () => this.coloured(false));
    const drop = iconButton("trash", "Remove the chosen knot", () => this.remove(this.chosen));
    const label = (text, box) => element("label", { class: "rm-inline" }, element("span", { text }), box);
    const boxes = [label("value", this.valueBox), label("opacity", this.opacityBox), label("", this.colourBox)];
    return element("div", { class: "rm-knot" }, ...boxes, drop);
  }

  presetRow() {
    const maps = [["", "colour map …"], ...Object.keys(MAPS)];
    const map = select(maps, "", (name) => {
      if (name) this.replace(withMap(this.table, name));
      map.value = "";
    }, "Colour map");
    const shapes = [["", "opacity …"], ...Object.keys(SHAPES)];
    const shape = select(shapes, "", (name) => {
      if (name) this.replace(withShape(this.table, name, ...this.viewer.scene.range));
      shape.value = "";
    }, "Shape of the opacity");
    return element("div", { class: "rm-pair" }, map, shape);
  }

  lengthRow() {
    const title = "Opacities are of a way of this length; a shorter one makes all denser";
    const change = (unit, moving) => {
      this.table.unit = unit;
      this.changed(moving);
    };
    this.lengthSlider = slider({ label: "Unit length", title, low: 0.001, high: 10, value: 1, log: true, free: true, change });
    return this.lengthSlider;
  }

  fileRow() {
    const copy = wordButton("Copy", "Copy the table as JSON", async () => {
      try {
        await navigator.clipboard.writeText(JSON.stringify(recordOfTable(this.table)));
        this.viewer.say("note", "The table is in the clipboard as JSON.");
      } catch {
        this.viewer.say("error", "The browser does not allow the clipboard here; save the table instead.");
      }
    }, "copy");
    const save = wordButton("Save", "Save as table.json, as raymarch render --table reads it", () => {
      download("table.json", JSON.stringify(recordOfTable(this.table), null, 1));
    }, "save");
    const use = (record) => this.replace(tableOfRecord(record.table ?? record));
    const load = wordButton("Load", "Load a table from a JSON file", () => {
      loadJson(use, (line) => this.viewer.say("error", line));
    }, "load");
    const reset = wordButton("Reset", "The table that the volume came with", () => {
      this.span = null;
      this.replace(tableOfRecord(this.first));
    }, "home");
    return element("div", { class: "rm-buttons" }, copy, save, load, reset);
  }

  // Takes the table of a scene, unless one is being edited.
  take(record) {
    this.first = record;
    this.table = tableOfRecord(record);
    this.chosen = null;
    const unit = this.table.unit;
    this.lengthSlider.bounds(unit / 100, unit * 100);
    this.show();
  }

  replace(table) {
    this.table = table;
    this.chosen = null;
    this.changed(false);
  }

  // What is shown of the values: what was zoomed to, or all that the volume and the table have.
  get frame() {
    const knots = [...this.table.points, ...this.table.stops].map((knot) => knot.value);
    const range = this.viewer.scene.range ?? [Math.min(...knots), Math.max(...knots)];
    const [low, high] = this.span ?? [Math.min(range[0], ...knots), Math.max(range[1], ...knots)];
    return tableFrame(this.canvas, low, high > low ? high : low + 1);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", () => this.lift());
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("dblclick", (event) => this.double(event));
    canvas.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.remove(knotAt(this.table, this.frame, event.offsetX, event.offsetY));
    });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  press(event) {
    if (!this.table || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const { frame } = this;
    const [x, y] = [event.offsetX, event.offsetY];
    let knot = knotAt(this.table, frame, x, y);
    const value = clamp(frame.value(x), frame.low, frame.high);
    this.fresh = !knot;
    if (!knot && y <= frame.bottom) knot = addKnot(this.table.points, { value, opacity: frame.opacity(y) });
    else if (!knot) knot = addKnot(this.table.stops, { value, colour: colourAt(this.table, value) });
    this.chosen = this.dragged = knot;
    if (this.fresh) this.changed(true);
    else this.show();
  }

  move(event) {
    if (!this.table) return;
    const { frame, dragged } = this;
    if (!dragged) return this.hover(knotAt(this.table, frame, event.offsetX, event.offsetY));
    const list = dragged.colour ? this.table.stops : this.table.points;
    moveKnot(list, dragged, clamp(frame.value(event.offsetX), frame.low, frame.high), this.least);
    if (!dragged.colour) dragged.opacity = frame.opacity(event.offsetY);
    this.changed(true);
  }

  lift() {
    if (!this.dragged) return;
    this.dragged = null;
    this.changed(false);
  }

  // The second press of a double click: a knot that the first one made stays, one that was there goes.
  double(event) {
    if (this.fresh) return;
    const knot = knotAt(this.table, this.frame, event.offsetX, event.offsetY);
    if (knot && knot === this.chosen) this.remove(knot);
  }

  get least() {
    return 10 * CLOSEST * (this.frame.high - this.frame.low);
  }

  hover(knot) {
    if (this.hovered === knot) return;
    this.hovered = knot;
    this.canvas.style.cursor = knot ? "grab" : "crosshair";
    this.draw();
  }

  remove(knot) {
    const list = knot && (knot.colour ? this.table.stops : this.table.points);
    if (!list || list.length <= 2) return;
    list.splice(list.indexOf(knot), 1);
    this.chosen = null;
    this.changed(false);
  }

  typed() {
    const { chosen } = this;
    if (!chosen) return;
    const [value, opacity] = [Number(this.valueBox.value), Number(this.opacityBox.value)];
    const list = chosen.colour ? this.table.stops : this.table.points;
    if (this.valueBox.value.trim() && Number.isFinite(value)) moveKnot(list, chosen, value, this.least);
    if (!chosen.colour && Number.isFinite(opacity)) chosen.opacity = clamp(opacity, 0, 1);
    this.changed(false);
  }

  // The colour of a stop; of a point of opacity a stop is made where it is.
  coloured(moving) {
    const colour = colourOf(this.colourBox.value);
    if (!this.chosen) return;
    if (this.chosen.colour) this.chosen.colour = colour;
    else {
      const near = this.table.stops.find((stop) => Math.abs(stop.value - this.chosen.value) < this.least);
      if (near) near.colour = colour;
      else addKnot(this.table.stops, { value: this.chosen.value, colour });
    }
    this.changed(moving);
  }

  wheel(event) {
    if (!this.table) return;
    event.preventDefault();
    const { frame } = this;
    const factor = Math.exp(0.0015 * event.deltaY);
    const at = frame.value(event.offsetX);
    const span = [at + (frame.low - at) * factor, at + (frame.high - at) * factor];
    this.span = null;
    const whole = this.frame;
    if (span[1] - span[0] < whole.high - whole.low) {
      this.span = [Math.max(span[0], whole.low), Math.min(span[1], whole.high)];
    }
    this.show();
  }

  key(event) {
    const { chosen } = this;
    if (!chosen) return;
    if (event.key === "Delete" || event.key === "Backspace") this.remove(chosen);
    const dx = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
    const dy = { ArrowDown: -1, ArrowUp: 1 }[event.key] ?? 0;
    if (!dx && !dy) return;
    event.preventDefault();
    const { frame } = this;
    const list = chosen.colour ? this.table.stops : this.table.points;
    moveKnot(list, chosen, chosen.value + ((frame.high - frame.low) / 200) * dx, this.least);
    if (!chosen.colour) chosen.opacity = clamp(chosen.opacity + 0.01 * dy, 0, 1);
    this.changed(false);
  }

  changed(moving) {
    this.show();
    this.viewer.look({ table: recordOfTable(this.table) }, moving);
  }

  show() {
    const { chosen, table } = this;
    this.lengthSlider.set(table.unit);
    for (const box of [this.valueBox, this.opacityBox, this.colourBox]) box.disabled = !chosen;
    this.opacityBox.disabled = !chosen || Boolean(chosen.colour);
    this.valueBox.value = chosen ? short(chosen.value) : "";
    this.opacityBox.value = chosen && !chosen.colour ? short(chosen.opacity, 3) : "";
    if (chosen) this.colourBox.value = hexOf(colourAt(table, chosen.value));
    this.draw();
  }

  draw() {
    const drawing = this.table && this.viewer.scene && cleared(this.canvas);
    if (!drawing) return;
    const { frame } = this;
    this.low.textContent = short(frame.low);
    this.high.textContent = short(frame.high);
    drawTable(drawing, this.table, frame, this.viewer.scene.histogram, this.chosen, this.hovered);
  }
}
