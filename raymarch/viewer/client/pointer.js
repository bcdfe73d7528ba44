// Mouse, pen, fingers and wheel over the picture: orbit, pan, zoom, roll.

const CLICK = 4; // pixels that a click may move

function listenToPointers(viewer, stage, held) {
  const pointers = new Map();
  let travelled = 0;
  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  stage.addEventListener("pointerdown", (event) => {
    if (event.target.closest(".rm-over") || event.button > 2) return;
    stage.focus({ preventScroll: true });
    held.press();
    stage.setPointerCapture(event.pointerId);
    if (!pointers.size) travelled = 0;
    pointers.set(event.pointerId, at(event));
    stage.classList.add("rm-held");
    event.preventDefault();
  });

  stage.addEventListener("pointermove", (event) => {
    const now = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) return void held.hover(...now, event);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (!dx && !dy) return;
    travelled += Math.hypot(dx, dy);
    if (pointers.size === 2) two(event.pointerId, before, now);
    else if (pointers.size === 1 && travelled > CLICK - 1) one(event, before, now);
    pointers.set(event.pointerId, now);
  });

  const lift = (event) => {
    const there = pointers.delete(event.pointerId);
    if (!pointers.size) stage.classList.remove("rm-held");
    if (there && event.type === "pointerup" && travelled < CLICK && event.button === 0) held.click(...at(event));
  };
  stage.addEventListener("pointerup", lift);
  stage.addEventListener("pointercancel", lift);
  stage.addEventListener("pointerleave", () => held.hover(-99, -99));

  // Half a turn a drag across the shorter side.
  function one(event, before, now) {
    const ratio = viewer.camera.width / stage.clientWidth;
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    const turn = Math.PI / Math.min(stage.clientWidth, stage.clientHeight);
    const pans = event.buttons & 6 || event.shiftKey;
    const rolls = event.ctrlKey || event.altKey || event.metaKey;
    viewer.steer((camera) => {
      if (rolls) camera.roll(-angleBetween(before, now));
      else if (pans) camera.pan(dx * ratio, dy * ratio);
      else camera.orbit(dx * turn, dy * turn);
    }, -dy / stage.clientHeight);
  }

  function angleBetween(before, now) {
    const [x, y] = [0.5 * stage.clientWidth, 0.5 * stage.clientHeight];
    const angle = Math.atan2(now[1] - y, now[0] - x) - Math.atan2(before[1] - y, before[0] - x);
    return Math.atan2(Math.sin(angle), Math.cos(angle));
  }

  // Two fingers: what lies under them stays there.
  function two(id, before, now) {
    const ratio = viewer.camera.width / stage.clientWidth;
    const other = [...pointers].find(([each]) => each !== id)[1];
    const away = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
    const turned = (p) => Math.atan2(p[1] - other[1], p[0] - other[0]);
    viewer.steer((camera) => {
      camera.pan(0.5 * (now[0] - before[0]) * ratio, 0.5 * (now[1] - before[1]) * ratio);
      camera.zoom(away(before) / away(now), 0.5 * (now[0] + other[0]) * ratio, 0.5 * (now[1] + other[1]) * ratio);
      const angle = turned(now) - turned(before);
      camera.roll(-Math.atan2(Math.sin(angle), Math.cos(angle)));
    });
  }

  stage.addEventListener(
    "wheel",
    (event) => {
      if (event.target.closest(".rm-over")) return;
      if (!held.wheels()) return void held.hint();
      event.preventDefault();
      const ratio = viewer.camera.width / stage.clientWidth;
      const lines = event.deltaMode === 1 ? 16 : 1;
      const [x, y] = at(event);
      const amount = clamp(event.deltaY * lines, -240, 240) * (event.ctrlKey ? 4 : 1); // a pinch is a small wheel
      viewer.steer((camera) => camera.zoom(Math.exp(0.0012 * amount), x * ratio, y * ratio), -0.0001 * amount);
    },
    { passive: false },
  );

  stage.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    event.stopPropagation();
  });
  stage.addEventListener("dblclick", (event) => {
    if (!event.target.closest(".rm-over")) held.double(...at(event));
  });
}
