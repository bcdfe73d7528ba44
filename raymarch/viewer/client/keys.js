// Keyboard shortcuts, and the list of them that "?" shows.

const SHORTCUTS = [
  ["drag", "orbit"],
  ["right drag, shift drag", "pan"],
  ["ctrl drag, alt drag", "roll"],
  ["wheel", "zoom to the pointer"],
  ["one, two fingers", "orbit; pan, zoom, roll"],
  ["double click", "fly to a camera of the set"],
  ["arrows", "orbit; with shift pan"],
  ["+ −", "zoom"],
  ["Q E", "roll"],
  ["R", "back to the start"],
  ["1 2 3", "from the end of x, y, z; with shift from the other"],
  ["O", "perspective or orthographic"],
  ["M", "next mode; with shift the one before"],
  ["B A C L", "box, axes, cameras, legend"],
  ["U", "the next axis up"],
  ["pointer at rest", "the value that it is over"],
  ["N P", "next camera of the set, the one before"],
  ["K", "add the view to the camera path"],
  ["S", "save the picture"],
  ["T", "the panel"],
  ["F", "full screen"],
  ["space", "pause a fit, or play the path"],
  ["esc", "end a comparison, close"],
];

// What a key does, by its name: actions are the viewer's parts'. True if it was one of ours.
function pressKey(viewer, parts, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const back = event.shiftKey ? -1 : 1;
  const steer = (change) => viewer.steer(change);
  const move = (dx, dy) =>
    steer((camera) => (event.shiftKey ? camera.pan(-30 * dx, -30 * dy) : camera.orbit(0.08 * dx, 0.08 * dy)));
  const along = (axis) => {
    const direction = [0, 0, 0];
    direction[axis] = -back;
    viewer.lookAlong(direction);
  };
  const digit = event.code?.match(/^(?:Digit|Numpad)([123])$/);
  const actions = {
    ArrowLeft: () => move(1, 0),
    ArrowRight: () => move(-1, 0),
    ArrowUp: () => move(0, 1),
    ArrowDown: () => move(0, -1),
    "+": () => steer((camera) => camera.zoom(0.87)),
    "=": () => steer((camera) => camera.zoom(0.87)),
    "-": () => steer((camera) => camera.zoom(1.15)),
    _: () => steer((camera) => camera.zoom(1.15)),
    q: () => steer((camera) => camera.roll(-0.06)),
    e: () => steer((camera) => camera.roll(0.06)),
    r: () => viewer.reset(),
    o: () => parts.stage.flat(),
    m: () => parts.panel.nextMode(back),
    b: () => parts.stage.toggles.box.click(),
    a: () => parts.stage.toggles.axes.click(),
    c: () => parts.stage.toggles.cameras.click(),
    l: () => parts.stage.toggles.legend.click(),
    u: () => parts.panel.view.nextUp(back),
    n: () => parts.panel.cameras.next(1),
    p: () => parts.panel.cameras.next(-1),
    k: () => parts.panel.path.add(),
    s: () => parts.panel.path.savePicture(),
    t: () => parts.stage.toggles.panel.click(),
    f: () => parts.stage.fullScreen(),
    "?": () => parts.stage.help(),
    " ": () => (viewer.scene?.fit ? parts.panel.fit.pause() : parts.panel.path.play()),
    Escape: () => parts.stage.escape(),
  };
  const action = digit
    ? () => along(Number(digit[1]) - 1)
    : actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action || !viewer.scene) return false;
  action();
  return true;
}

function listenToKeys(viewer, parts, root) {
  root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // a notebook has shortcuts of its own
    const typing = event.target.closest("input, select, textarea, [role=slider]");
    if (typing && event.key === "Escape") return parts.stage.element.focus();
    if (typing || (event.target.closest("button, summary") && [" ", "Enter"].includes(event.key))) return;
    if (event.defaultPrevented || !pressKey(viewer, parts, event)) return;
    event.preventDefault();
  });
}

function helpCard(close) {
  const list = element("dl", { class: "rm-keys" });
  for (const [keys, what] of SHORTCUTS) list.append(element("dt", { text: keys }), element("dd", { text: what }));
  const head = element(
    "div",
    { class: "rm-head" },
    element("strong", { text: "Mouse and keyboard" }),
    iconButton("close", "Close", close),
  );
  const card = element(
    "div",
    { class: "rm-card rm-over", hidden: true, aria: { label: "Mouse and keyboard" } },
    head,
    list,
  );
  card.setAttribute("role", "dialog");
  return card;
}
