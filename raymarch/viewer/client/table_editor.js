// Transfer function editor: points of opacity and stops of colour over the histogram, with rows of what they are.

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
    this.element = element(
      "div",
      {},
      this.canvas,
      ends,
      knotRow(this),
      presetRow(this),
      lengthRow(this),
      fileRow(this),
    );
    this.hand = new TableHand(this);
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

  // Shows a table that is the look's already; what the volume came with stays the one to go back to.
  shown(record) {
    this.table = tableOfRecord(record);
    this.chosen = null;
    const { unit } = this.table;
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

  get least() {
    return 10 * CLOSEST * (this.frame.high - this.frame.low);
  }

  // Moves a knot to a value, or as near as its neighbours let it.
  put(knot, value, moving) {
    moveKnot(knot.colour ? this.table.stops : this.table.points, knot, value, this.least);
    this.changed(moving);
  }

  // Shows the values of a range, at most all.
  zoom(low, high) {
    this.span = null;
    const whole = this.frame;
    if (high - low < whole.high - whole.low) this.span = [Math.max(low, whole.low), Math.min(high, whole.high)];
    this.show();
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

  // Takes what was typed into a box; the other one shows its number rounded, and is left alone.
  typed(box) {
    const { chosen } = this;
    if (!chosen) return;
    const opaque = box === this.opacityBox;
    const [low, high] = opaque ? [0, 1] : [-Infinity, Infinity];
    const before = opaque ? chosen.opacity : chosen.value;
    const { number, text } = checked(typedNumber(box.value), box.value, low, high, before);
    if (opaque && !chosen.colour) chosen.opacity = number;
    this.put(chosen, opaque ? chosen.value : number, false);
    const between = !opaque && !text && Math.abs(chosen.value - number) > 1e-9 * Math.abs(number);
    this.why(between ? `${short(number)} is beyond the next knot; ${short(chosen.value)} is taken` : text);
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

  changed(moving) {
    this.why();
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
    this.low.textContent = short(frame.low, 4, frame.high - frame.low);
    this.high.textContent = short(frame.high, 4, frame.high - frame.low);
    drawTable(drawing, this.table, frame, this.viewer.scene.histogram, this.chosen, this.hovered);
  }
}
