// Tools over the picture: back to the start, projection, marks, saving, full screen, help, panel.

function toolBar(stage) {
  const { viewer } = stage;
  const redraw = () => stage.draw();
  stage.toggles = {
    flat: toggle("perspective", "Orthographic (O)", false, () => stage.flat(false)),
    box: toggle("box", "Box of the volume (B)", true, redraw),
    axes: toggle("axes", "Axes with units, scale (A)", true, redraw),
    cameras: toggle("camera", "Cameras of the data set (C)", true, (on) => {
      viewer.frusta.shown = on;
      redraw();
    }),
    legend: toggle("legend", "Legend of the colours (L)", true, (on) => {
      stage.legend.pressed = on;
      stage.legend.show();
    }),
    panel: toggle("panel", "Panel (T)", true, (on) => viewer.tell("panel", on)),
  };
  const { flat, box, axes, cameras, legend, panel } = stage.toggles;
  cameras.hidden = true;
  const home = iconButton("home", "Back to the start (R)", () => viewer.reset());
  const save = iconButton("save", "Save the picture (S)", () => viewer.tell("save"));
  const full = iconButton("full", "Full screen (F)", () => stage.fullScreen());
  const help = iconButton("help", "Mouse and keyboard (?)", () => stage.help());
  const group = (...all) => element("div", { class: "rm-group" }, ...all);
  return element(
    "div",
    { class: "rm-tools rm-over" },
    group(home, flat),
    group(box, axes, cameras, legend),
    group(save, full, help, panel),
  );
}
