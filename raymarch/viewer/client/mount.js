// The viewer in an element of a page or of a notebook's cell. Several of them live on one page.

const NARROW = 760; // pixels across under which the panel lies over the picture

// Builds the viewer into `root`; `channel` as in socket.js. Returns { end } that takes it down.
export function mount(root, channel, { page = false } = {}) {
  const viewer = new Viewer(channel);
  const stage = new Stage(viewer, page);
  const panel = new Panel(viewer, stage);
  const frame = element(
    "div",
    { class: `rm-viewer${page ? " rm-whole" : ""}` },
    stage.element,
    panel.element,
    statusLine(viewer),
  );
  frame.dataset.lmSuppressShortcuts = "true"; // JupyterLab's shortcuts, while the viewer has the focus
  listenToKeys(viewer, { stage, panel }, frame);
  viewer.on("panel", (on) => frame.classList.toggle("rm-bare", !on));
  let narrow = null;
  const sizes = new ResizeObserver(([entry]) => {
    const now = entry.contentRect.width < NARROW;
    if (now === narrow || !entry.contentRect.width) return;
    narrow = now;
    frame.classList.toggle("rm-narrow", narrow);
    if (narrow && stage.toggles.panel.pressed) stage.toggles.panel.click();
  });
  sizes.observe(frame);
  root.replaceChildren(frame);
  if (page) {
    viewer.on("scene", (scene) => (document.title = scene.name ? `${scene.name} · raymarch` : "raymarch"));
    stage.element.focus({ preventScroll: true });
  }
  return {
    end() {
      sizes.disconnect();
      stage.end();
      viewer.end();
      frame.remove();
    },
  };
}
