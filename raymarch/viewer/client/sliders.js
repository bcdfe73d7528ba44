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

// A number that was typed, with a comma or a point; NaN for what is none.
function typedNumber(text) {
  const plain = text.trim().replace(",", ".").replace("\u2212", "-");
  return plain ? Number(plain) : Number.NaN;
}

// A line under a row that says why what was typed is not taken as it is; it goes with the next number that is.
function whyLine(made) {
  const line = element("div", { class: "rm-why", hidden: true });
  line.setAttribute("role", "alert");
  made.append(line);
  return (text = "") => {
    line.textContent = text;
    line.hidden = !text;
  };
}

// Why a typed number is not taken, and what is taken for it: { number, text }.
function checked(typed, text, low, high, before) {
  if (!Number.isFinite(typed)) return { number: before, text: `“${text.trim().slice(0, 20)}” is no number; want one such as 0.5` };
  if (typed < low) return { number: low, text: `${short(typed)} is too small; the least is ${short(low)}, which is taken` };
  if (typed > high) return { number: high, text: `${short(typed)} is too large; the most is ${short(high)}, which is taken` };
  return { number: typed, text: "" };
}

// A row of label, slider and number. Numbers beyond the slider's ends may be typed where `free` is set.
// `doubt(value)` is what there is to say of one that is taken.
function slider({ label, title = "", low, high, value, log = false, free = false, doubt = () => "", change }) {
  const bar = rangeInput(label);
  const box = numberInput(`${label}, number`, title);
  const made = element(
    "div",
    { class: "rm-row", title },
    element("span", { class: "rm-label", text: label }),
    bar,
    box,
  );
  const why = whyLine(made);
  let scale = slide(low, high, log);
  const show = () => {
    bar.value = Math.round(NOTCHES * clamp(scale.place(made.value), 0, 1));
    bar.style.setProperty("--rm-share", `${clamp(100 * scale.place(made.value), 0, 100)}%`);
    bar.setAttribute("aria-valuetext", short(made.value));
    if (document.activeElement !== box) box.value = short(made.value);
  };
  const take = (moving) => {
    made.value = Number(scale.value(bar.value / NOTCHES).toPrecision(6));
    why();
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
    const least = log && free ? Number.MIN_VALUE : free ? -Infinity : low;
    const { number, text } = checked(typedNumber(box.value), box.value, least, free ? Infinity : high, made.value);
    made.value = text && free ? made.value : number;
    why(text && free ? text.replace(/;.*/, `; ${log ? "want a number over 0" : "want a number"}`) : text || doubt(number));
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

// A row with two handles; the value is [from, to], never crossed. Where `free` is set numbers beyond its ends may be
// typed, and it grows.
function rangeSlider({ label, title = "", low, high, value, free = false, change }) {
  const bars = [rangeInput(`${label} from`), rangeInput(`${label} to`)];
  const boxes = [numberInput(`${label} from, number`), numberInput(`${label} to, number`)];
  const fill = element("div", { class: "rm-fill" });
  const track = element("div", { class: "rm-double" }, fill, ...bars);
  const made = element("div", { class: "rm-row rm-between", title });
  made.append(element("span", { class: "rm-label", text: label }), boxes[0], track, boxes[1]);
  const why = whyLine(made);
  let scale = slide(low, high, false);
  const show = () => {
    const places = made.value.map((v) => clamp(scale.place(v), 0, 1));
    fill.style.left = `${100 * places[0]}%`;
    fill.style.right = `${100 * (1 - places[1])}%`;
    places.forEach((place, i) => {
      bars[i].value = Math.round(NOTCHES * place);
      bars[i].setAttribute("aria-valuetext", short(made.value[i]));
      if (document.activeElement !== boxes[i]) boxes[i].value = short(made.value[i], 4, high - low);
    });
    bars[0].style.zIndex = places[0] > 0.5 ? 3 : 2;
  };
  const put = (i, given, moving) => {
    made.value[i] = i ? Math.max(given, made.value[0]) : Math.min(given, made.value[1]);
    show();
    change([...made.value], moving);
  };
  bars.forEach((bar, i) => {
    const take = (moving) => {
      why();
      put(i, Number(scale.value(bar.value / NOTCHES).toPrecision(6)), moving);
    };
    bar.addEventListener("input", () => take(true));
    bar.addEventListener("change", () => take(false));
    boxes[i].addEventListener("change", () => {
      const [least, most] = free ? [-Infinity, Infinity] : [low, high];
      const typed = boxes[i].value;
      let { number, text } = checked(typedNumber(typed), typed, least, most, made.value[i]);
      const other = made.value[1 - i];
      if (!text && (i ? number <= other : number >= other)) {
        text = `${short(number)} is ${i ? "not over" : "not under"} the other end, ${short(other)}; want a range`;
        number = made.value[i];
      }
      why(text);
      if (number < low || number > high) made.bounds(Math.min(low, number), Math.max(high, number));
      boxes[i].blur();
      put(i, number, false);
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
