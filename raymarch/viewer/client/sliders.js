// Sliders: one number, or two that bound a range. `change(value, moving)` hears of every move.

const NOTCHES = 1000;

// Between a number and its place 0..1 on a slider, which may be logarithmic.
function slide(low, high, log) {
  if (log) {
    const [a, b] = [Math.log(low), Math.log(high)];
    return { place: (v) => (Math.log(Math.max(v, low)) - a) / (b - a), value: (p) => Math.exp(a + p * (b - a)) };
  }
  return { place: (v) => (v - low) / (high - low || 1), value: (p) => low + p * (high - low) };
}

function rangeInput(label) {
  return element("input", { type: "range", min: 0, max: NOTCHES, step: 1, class: "rm-range", aria: { label } });
}

function numberInput(label, title = "") {
  return element("input", { type: "text", inputMode: "decimal", class: "rm-number", title, aria: { label } });
}

// A row of label, slider and number. Numbers beyond the slider's ends may be typed where `free` is set.
function slider({ label, title = "", low, high, value, log = false, free = false, change }) {
  const bar = rangeInput(label);
  const box = numberInput(`${label}, number`, title);
  const made = element(
    "div",
    { class: "rm-row", title },
    element("span", { class: "rm-label", text: label }),
    bar,
    box,
  );
  let scale = slide(low, high, log);
  const show = () => {
    bar.value = Math.round(NOTCHES * clamp(scale.place(made.value), 0, 1));
    bar.style.setProperty("--rm-share", `${clamp(100 * scale.place(made.value), 0, 100)}%`);
    bar.setAttribute("aria-valuetext", short(made.value));
    if (document.activeElement !== box) box.value = short(made.value);
  };
  const take = (moving) => {
    made.value = Number(scale.value(bar.value / NOTCHES).toPrecision(6));
    show();
    change(made.value, moving);
  };
  bar.addEventListener("input", () => take(true));
  bar.addEventListener("change", () => take(false));
  bar.addEventListener("dblclick", () => {
    made.set(made.first);
    change(made.value, false);
  });
  box.addEventListener("change", () => {
    const typed = Number(box.value.replace(",", "."));
    if (box.value.trim() && Number.isFinite(typed)) made.value = free ? typed : clamp(typed, low, high);
    box.value = short(made.value);
    show();
    change(made.value, false);
  });
  made.set = (number) => {
    made.value = number;
    show();
  };
  made.bounds = (least, most) => {
    [low, high] = [least, most];
    scale = slide(low, high, log);
    show();
  };
  made.first = value;
  made.set(value);
  return made;
}

// A row with two handles; the value is [from, to], never crossed.
function rangeSlider({ label, title = "", low, high, value, change }) {
  const bars = [rangeInput(`${label} from`), rangeInput(`${label} to`)];
  const boxes = [numberInput(`${label} from, number`), numberInput(`${label} to, number`)];
  const fill = element("div", { class: "rm-fill" });
  const track = element("div", { class: "rm-double" }, fill, ...bars);
  const made = element("div", { class: "rm-row rm-between", title });
  made.append(element("span", { class: "rm-label", text: label }), boxes[0], track, boxes[1]);
  let scale = slide(low, high, false);
  const show = () => {
    const places = made.value.map((v) => clamp(scale.place(v), 0, 1));
    fill.style.left = `${100 * places[0]}%`;
    fill.style.right = `${100 * (1 - places[1])}%`;
    places.forEach((place, i) => {
      bars[i].value = Math.round(NOTCHES * place);
      bars[i].setAttribute("aria-valuetext", short(made.value[i]));
      if (document.activeElement !== boxes[i]) boxes[i].value = short(made.value[i]);
    });
    bars[0].style.zIndex = places[0] > 0.5 ? 3 : 2;
  };
  const put = (i, given, moving) => {
    made.value[i] = i ? Math.max(given, made.value[0]) : Math.min(given, made.value[1]);
    show();
    change([...made.value], moving);
  };
  bars.forEach((bar, i) => {
    const take = (moving) => put(i, Number(scale.value(bar.value / NOTCHES).toPrecision(6)), moving);
    bar.addEventListener("input", () => take(true));
    bar.addEventListener("change", () => take(false));
    boxes[i].addEventListener("change", () => {
      const typed = Number(boxes[i].value.replace(",", "."));
      const fine = boxes[i].value.trim() && Number.isFinite(typed);
      boxes[i].blur();
      put(i, fine ? clamp(typed, low, high) : made.value[i], false);
    });
  });
  track.addEventListener("dblclick", () => {
    made.set([low, high]);
    change([low, high], false);
  });
  made.set = (range) => {
    made.value = [...range];
    show();
  };
  made.bounds = (least, most) => {
    [low, high] = [least, most];
    scale = slide(low, high, false);
    show();
  };
  made.set(value);
  return made;
}
