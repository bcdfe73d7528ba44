// Rows under the transfer function: the chosen knot, presets, unit length, files.

function knotRow(editor) {
  editor.valueBox = numberInput("Value of the knot");
  editor.opacityBox = numberInput("Opacity of the knot");
  editor.colourBox = element("input", { type: "color", class: "rm-colour", aria: { label: "Colour of the knot" } });
  for (const box of [editor.valueBox, editor.opacityBox]) box.addEventListener("change", () => editor.typed(box));
  editor.colourBox.addEventListener("input", () => editor.coloured(true));
  editor.colourBox.addEventListener("change", () => editor.coloured(false));
  const drop = iconButton("trash", "Remove the chosen knot", () => editor.remove(editor.chosen));
  const label = (text, box) => element("label", { class: "rm-inline" }, element("span", { text }), box);
  const boxes = [label("value", editor.valueBox), label("opacity", editor.opacityBox), label("", editor.colourBox)];
  const row = element("div", { class: "rm-knot" }, ...boxes, drop);
  editor.why = whyLine(row);
  return row;
}

function presetRow(editor) {
  const maps = [["", "colour map …"], ...Object.keys(MAPS)];
  const map = select(
    maps,
    "",
    (name) => {
      if (name) editor.replace(withMap(editor.table, name));
      map.value = "";
    },
    "Colour map",
  );
  const shapes = [["", "opacity …"], ...Object.keys(SHAPES)];
  const shape = select(
    shapes,
    "",
    (name) => {
      if (name) editor.replace(withShape(editor.table, name, ...editor.viewer.scene.range));
      shape.value = "";
    },
    "Shape of the opacity",
  );
  return element("div", { class: "rm-pair" }, map, shape);
}

function lengthRow(editor) {
  const title = "Opacities are of a way of editor length; a shorter one makes all denser";
  const change = (unit, moving) => {
    editor.table.unit = unit;
    editor.changed(moving);
  };
  editor.lengthSlider = slider({
    label: "Unit length",
    title,
    low: 0.001,
    high: 10,
    value: 1,
    log: true,
    free: true,
    change,
  });
  return editor.lengthSlider;
}

function fileRow(editor) {
  const copy = wordButton(
    "Copy",
    "Copy the table as JSON",
    () =>
      toClipboard(JSON.stringify(recordOfTable(editor.table)), "The table, as JSON,", (...words) =>
        editor.viewer.say(...words),
      ),
    "copy",
  );
  const save = wordButton(
    "Save",
    "Save as table.json, as raymarch render --table reads it",
    () => {
      download("table.json", JSON.stringify(recordOfTable(editor.table), null, 1));
    },
    "save",
  );
  const use = (record) => editor.replace(tableOfRecord(record.table ?? record));
  const load = wordButton(
    "Load",
    "Load a table from a JSON file",
    () => {
      loadJson(use, (line) => editor.viewer.say("error", line));
    },
    "load",
  );
  const reset = wordButton(
    "Reset",
    "The table that the volume came with",
    () => {
      editor.span = null;
      editor.replace(tableOfRecord(editor.first));
    },
    "home",
  );
  return element("div", { class: "rm-buttons" }, copy, save, load, reset);
}
