// Mouse, wheel and keys over the transfer function: knots are dragged, added, removed; the values are zoomed.

const DOUBLE = 600; // ms in which a second click is of a double one, that leaves what the first one made

class TableHand {
  constructor(editor) {
    this.editor = editor;
    const { canvas } = editor;
    const listen = (event, act, how) => canvas.addEventListener(event, (e) => editor.table && act(e), how);
    listen("pointerdown", (event) => this.press(event));
    listen("pointermove", (event) => this.move(event));
    listen("pointerup", () => this.lift());
    listen("pointercancel", () => this.lift());
    listen("pointerleave", () => editor.hover(null));
    listen("dblclick", (event) => this.double(event));
    listen("contextmenu", (event) => {
      event.preventDefault();
      event.stopPropagation();
      editor.remove(this.under(event));
    });
    listen("wheel", (event) => this.wheel(event), { passive: false });
    listen("keydown", (event) => this.key(event));
  }

  under(event) {
    return knotAt(this.editor.table, this.editor.frame, event.offsetX, event.offsetY);
  }

  press(event) {
    if (event.button !== 0) return;
    const { editor } = this;
    const { table, frame, canvas } = editor;
    canvas.setPointerCapture(event.pointerId);
    let knot = this.under(event);
    this.touched = !knot;
    if (!knot) {
      const value = clamp(frame.value(event.offsetX), frame.low, frame.high);
      const above = event.offsetY <= frame.bottom;
      if (above) knot = addKnot(table.points, { value, opacity: frame.opacity(event.offsetY) });
      else knot = addKnot(table.stops, { value, colour: colourAt(table, value) });
      knot.born = event.timeStamp;
    }
    editor.chosen = this.dragged = knot;
    if (this.touched) editor.changed(true);
    else editor.show();
  }

  move(event) {
    const { editor, dragged } = this;
    if (!dragged) return editor.hover(this.under(event));
    const { frame } = editor;
    this.touched = true;
    if (!dragged.colour) dragged.opacity = frame.opacity(event.offsetY);
    editor.put(dragged, clamp(frame.value(event.offsetX), frame.low, frame.high), true);
  }

  lift() {
    const { dragged, touched } = this;
    this.dragged = null;
    if (dragged && touched) this.editor.changed(false);
  }

  double(event) {
    const knot = this.under(event);
    if (knot && !(event.timeStamp - knot.born < DOUBLE)) this.editor.remove(knot);
  }

  // Zooms the values that are shown, once the editor was clicked: before that the wheel scrolls the panel.
  wheel(event) {
    const { editor } = this;
    if (document.activeElement !== editor.canvas) return;
    event.preventDefault();
    const { frame } = editor;
    const factor = Math.exp(0.0015 * event.deltaY);
    const at = frame.value(event.offsetX);
    editor.zoom(at + (frame.low - at) * factor, at + (frame.high - at) * factor);
  }

  key(event) {
    const { editor } = this;
    const { chosen, frame } = editor;
    if (!chosen) return;
    if (event.key === "Delete" || event.key === "Backspace") return editor.remove(chosen);
    const dx = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
    const dy = { ArrowDown: -1, ArrowUp: 1 }[event.key] ?? 0;
    if (!dx && !dy) return;
    event.preventDefault();
    if (!chosen.colour) chosen.opacity = clamp(chosen.opacity + 0.01 * dy, 0, 1);
    editor.put(chosen, chosen.value + ((frame.high - frame.low) / 200) * dx, false);
  }
}
