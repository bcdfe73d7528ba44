// Keys of a page, and the card that lists them.

const PAGE_KEYS = [
  ["drag, one finger", "turn"],
  ["right drag, two fingers", "move"],
  ["wheel, pinch", "zoom"],
  ["arrows", "turn; with shift move"],
  ["+ −", "zoom"],
  ["Q E", "roll"],
  ["R", "back to the start"],
  ["M", "next mode"],
  ["N P", "next camera, the one before"],
  ["C", "the photograph on and off"],
  ["space", "play the path, or turn around"],
  ["O", "perspective or parallel"],
  ["S", "save the picture"],
  ["T", "the panel"],
  ["F", "full screen"],
  ["?", "this list"],
];

function listenToPageKeys(viewer, stage, act) {
  const move = (event, dx, dy) =>
    viewer.steer((camera) => (event.shiftKey ? camera.pan(-30 * dx, -30 * dy) : camera.orbit(0.08 * dx, 0.08 * dy)));
  const actions = {
    ArrowLeft: (event) => move(event, 1, 0),
    ArrowRight: (event) => move(event, -1, 0),
    ArrowUp: (event) => move(event, 0, 1),
    ArrowDown: (event) => move(event, 0, -1),
    "+": () => viewer.steer((camera) => camera.zoom(0.87)),
    "=": () => viewer.steer((camera) => camera.zoom(0.87)),
    "-": () => viewer.steer((camera) => camera.zoom(1.15)),
    q: () => viewer.steer((camera) => camera.roll(-0.06)),
    e: () => viewer.steer((camera) => camera.roll(0.06)),
    r: act.home,
    m: (event) => act.nextMode(event.shiftKey ? -1 : 1),
    n: () => act.camera(1),
    p: () => act.camera(-1),
    c: act.photograph,
    " ": act.play,
    o: act.parallel,
    s: act.save,
    t: act.panel,
    f: act.full,
    "?": act.help,
    Escape: act.close,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const inside = event.target.closest?.("input, select, textarea, button, summary, .rm-table, .rm-histogram");
    if (inside && event.key !== "Escape") return;
    const action = actions[event.key] ?? actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
  stage.tabIndex = 0;
}

function keysCard(close) {
  const list = element("dl", { class: "rm-keys" });
  for (const [key, what] of PAGE_KEYS) list.append(element("dt", { text: key }), element("dd", { text: what }));
  const head = element("div", { class: "rm-head" }, element("strong", { text: "Keys" }), iconButton("close", "Close", close));
  const card = element("div", { class: "rm-card rm-over", hidden: true, aria: { label: "Keys" } }, head, list);
  card.setAttribute("role", "dialog");
  return card;
}
