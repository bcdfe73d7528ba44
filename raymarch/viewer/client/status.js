// Status line, and messages that are dismissed.

const LOST =
  "The connection is lost, and tried again. If raymarch has ended, start it once more and open the URL that it prints.";

function statusLine(viewer) {
  const dot = element("i", { class: "rm-dot" });
  const state = element("span", { class: "rm-state", text: "waiting for the scene" });
  const size = element("span", { title: "Resolution of the frame that is shown, and of the picture at rest" });
  const rate = element("span", { title: "Frames in the last second" });
  const delay = element("span", { title: "From a move to the first frame of it" });
  const drawing = element("span", { class: "rm-drawing" });
  const what = element("span", { class: "rm-what" });
  const made = element("div", { class: "rm-status" }, dot, state, size, rate, delay, drawing, what);
  made.setAttribute("role", "status");
  let link = "open";

  const show = () => {
    const { picture, camera } = viewer;
    const whole = `${camera.width} × ${camera.height}`;
    const small = picture.size && picture.size[0] !== camera.width;
    const { settled, latency, moving } = viewer.sender;
    if (link === "lost") state.textContent = "connection lost, trying again …";
    else if (!viewer.scene) state.textContent = "waiting for the scene";
    else state.textContent = settled ? "at rest" : moving || viewer.flight ? "moving" : "refining …";
    dot.className = `rm-dot rm-${link === "lost" ? "lost" : settled ? "settled" : "busy"}`;
    size.textContent = small ? `${picture.size.join(" × ")} of ${whole}` : whole;
    const fps = picture.here ? Math.round(viewer.moving.rate.rate) : picture.rate;
    rate.textContent = fps > 1 && !settled ? `${fps} fps` : "";
    drawing.textContent = viewer.moving.words;
    drawing.title = state.title = viewer.moving.hint;
    delay.textContent = latency === null ? "" : latency < 2000 ? `${Math.round(latency)} ms` : seconds(latency / 1000);
  };
  const soon = throttled(show, 100);
  viewer.on("state", (given) => {
    link = given;
    show();
  });
  viewer.on("scene", (scene) => {
    what.textContent = [scene.name, scene.shape?.join(" × "), scene.unit].filter(Boolean).join(" · ");
    what.title = "Name, samples along each index, unit of lengths";
    show();
  });
  viewer.on("frame", soon);
  for (const event of ["sent", "drawn", "drawing"]) viewer.on(event, soon);
  return made;
}

// Words for the person to copy, where the browser keeps its clipboard from the page.
function copyItem(words, drop) {
  const box = element("textarea", { class: "rm-copy", readOnly: true, value: words, rows: 4 });
  box.addEventListener("focus", () => box.select());
  const lead = element("span", {}, "The browser keeps its clipboard from this page; copy from here:", box);
  const item = element("div", { class: "rm-message rm-remark" }, lead);
  item.append(iconButton("close", "Dismiss", () => drop(item)));
  requestAnimationFrame(() => box.select());
  return item;
}

// A function that is called at most once in so many milliseconds, the last time always.
function throttled(call, wait) {
  let timer = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      call();
    }, wait);
  };
}

// Messages over the picture; the same one twice is one with a count.
function messageList(viewer) {
  const made = element("div", { class: "rm-messages rm-over", aria: { live: "polite" } });
  const drop = (item) => item.remove();
  viewer.on("message", (kind, text) => {
    const same = [...made.children].find((item) => item.words === text && item.kind === kind);
    if (same) {
      same.count += 1;
      same.counter.textContent = `× ${same.count}`;
      if (kind === "note") later(same);
      return;
    }
    const counter = element("span", { class: "rm-count" });
    if (kind === "copy") return void made.append(copyItem(text, drop));
    const item = element(
      "div",
      { class: `rm-message rm-${kind === "error" ? "error" : "remark"}` },
      element("span", { text }),
      counter,
    );
    Object.assign(item, { words: text, kind, count: 1, counter });
    item.append(iconButton("close", "Dismiss", () => drop(item)));
    if (kind === "error") item.setAttribute("role", "alert");
    made.append(item);
    if (made.children.length > 5) made.children[1].remove();
    if (kind === "note") later(item);
  });
  const lost = element("div", { class: "rm-message rm-error", hidden: true }, element("span", { text: LOST }));
  made.append(lost);
  viewer.on("state", (state, why) => {
    lost.hidden = state !== "lost";
    lost.firstChild.textContent = why || LOST;
  });
  const later = (item) => {
    clearTimeout(item.timer);
    item.timer = setTimeout(() => drop(item), 8000);
  };
  return made;
}
