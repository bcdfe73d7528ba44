// Elements of the page, icons, buttons, sections of the panel.

const ICONS = {
  home: "M4 11 12 4l8 7M6 10v9h12v-9",
  box: "M12 3 20 7.5v9L12 21l-8-4.5v-9zM12 12v9M12 12 4 7.5M12 12l8-4.5",
  axes: "M6 4v14h14M6 4 4 7M6 4l2 3M20 18l-3-2M20 18l-3 2M6 18l6-6",
  legend: "M5 4h5v16H5zM5 9h5M5 14h5M14 6h6M14 12h6M14 18h6",
  camera: "M3 8h4l2-3h6l2 3h4v11H3zM12 10a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7",
  perspective: "M4 5v14M20 9v6M4 5l16 4M4 19l16-4",
  save: "M12 4v11M7 11l5 5 5-5M4 20h16",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9.7h4M4 14.3h4M16 9.7h4M16 14.3h4",
  panel: "M4 5h16v14H4zM14 5v14",
  help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  full: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  play: "M7 5l12 7-12 7z",
  pause: "M8 5v14M16 5v14",
  stop: "M6 6h12v12H6z",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  copy: "M8 8h11v12H8zM5 16V4h11",
  load: "M12 16V5M7 9l5-5 5 5M4 20h16",
  turn: "M20 12a8 8 0 1 1-2.5-5.8M20 4v4h-4",
  compare: "M12 3v18M5 6h4M5 18h4M5 6v12M15 6h4v12h-4",
};

// An element: { class, text, title, ... } are its properties, `on` its listeners, `aria` its labels.
function element(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  const { class: name, text, on, aria, ...rest } = given;
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  for (const [event, listener] of Object.entries(on ?? {})) made.addEventListener(event, listener);
  for (const [key, value] of Object.entries(aria ?? {})) made.setAttribute(`aria-${key}`, value);
  Object.assign(made, rest);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", ICONS[name]);
  drawing.append(path);
  return drawing;
}

// A button with an icon; what it does is its label and its tooltip.
function iconButton(name, title, onclick) {
  return element("button", { class: "rm-icon", type: "button", title, onclick, aria: { label: title } }, icon(name));
}

// A button of words, with an icon before them where one is named.
function wordButton(text, title, onclick, name = null) {
  const made = element("button", { class: "rm-button", type: "button", title, onclick });
  made.append(...(name ? [icon(name)] : []), element("span", { text }));
  return made;
}

// A button that is pressed or not.
function toggle(name, title, value, change) {
  const made = iconButton(name, title, () => set(!made.pressed));
  const set = (on, quiet = false) => {
    made.pressed = on;
    made.setAttribute("aria-pressed", on);
    if (!quiet) change(on);
  };
  made.set = set;
  set(value, true);
  return made;
}

// A part of the panel that folds; `title` is its heading.
function section(title, open, ...children) {
  const body = element("div", { class: "rm-body" }, ...children);
  const made = element("details", { class: "rm-section", open }, element("summary", { text: title }), body);
  made.body = body;
  return made;
}

// A row of the panel: a label before a control.
function row(text, control, title = "") {
  return element("label", { class: "rm-row", title }, element("span", { class: "rm-label", text }), control);
}

function note(text) {
  return element("p", { class: "rm-note", text });
}

function select(options, value, change, label) {
  const made = element("select", { class: "rm-select", aria: { label } });
  for (const option of options) {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    made.append(element("option", { value: key, text }));
  }
  made.value = value;
  made.addEventListener("change", () => change(made.value));
  return made;
}

// A canvas that is as many device pixels as it covers; `draw` is called at every new size.
function sharpCanvas(name, label, draw) {
  const made = element("canvas", { class: name, aria: { label } });
  const fit = () => {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [made.clientWidth, made.clientHeight].map((side) => Math.round(side * ratio));
    if (!width || !height) return;
    if (made.width !== width || made.height !== height) Object.assign(made, { width, height });
    draw();
  };
  made.observer = new ResizeObserver(fit);
  made.observer.observe(made);
  return made;
}

// The canvas' drawing, cleared, in CSS pixels; null while it is not shown.
function cleared(canvas) {
  const drawing = canvas.getContext("2d");
  const ratio = window.devicePixelRatio || 1;
  if (!canvas.clientWidth) return null;
  drawing.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawing.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return drawing;
}

// Hands bytes to the person as a file.
function download(name, bytes) {
  const types = { png: "image/png", json: "application/json", mp4: "video/mp4", gif: "image/gif" };
  const type = types[name.split(".").pop()] ?? "application/octet-stream";
  const address = URL.createObjectURL(new Blob([bytes], { type }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Puts words into the clipboard; `say` hears, of a kind and in a line, how that went.
async function toClipboard(words, what, say) {
  try {
    await navigator.clipboard.writeText(words);
    say("note", `${what} is in the clipboard.`);
  } catch {
    say("copy", words); // as where the page came by http from another machine: to be copied by hand
  }
}

// Asks the person for a JSON file; `use` gets what it holds, `fail` a line.
function loadJson(use, fail) {
  const input = element("input", { type: "file", accept: ".json,application/json" });
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    try {
      if (file.size > 1 << 22) throw new Error("is larger than 4 MB");
      use(JSON.parse(await file.text()));
    } catch (error) {
      fail(`${file.name}: ${error.message}`);
    }
  });
  input.click();
}
