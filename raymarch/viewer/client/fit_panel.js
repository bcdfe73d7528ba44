// Panel of a running fit: how far it is, curves of loss and PSNR, pause, learning rate, stop.

const MOST_POINTS = 4000; // of a curve; then every second of the older ones goes

class FitPanel {
  constructor(viewer) {
    this.viewer = viewer;
    this.state = null;
    this.curves = { loss: [], psnr: [] };
    this.head = element("div", { class: "rm-fitline" });
    this.bar = element("progress", { class: "rm-progress", max: 1, value: 0, aria: { label: "Progress of the fit" } });
    this.loss = sharpCanvas("rm-curve", "Loss by step", () => this.draw());
    this.psnr = sharpCanvas("rm-curve", "PSNR by step", () => this.draw());
    this.pauseButton = wordButton("Pause", "Pause the fit, go on with it (space)", () => this.pause(), "pause");
    this.stopButton = wordButton("Stop and keep", "End the fit now, and keep the volume as it is", () => this.stop(), "stop");
    this.rate = slider({
      label: "Rate", title: "Learning rate, as a part of what the settings say", low: 0.01, high: 10, value: 1, log: true,
      change: (value, moving) => moving || viewer.send({ type: "fit", action: "rate", value }),
    });
    const buttons = element("div", { class: "rm-buttons" }, this.pauseButton, this.stopButton);
    this.section = section("Fit", true, this.head, this.bar, this.loss, this.psnr, this.rate, buttons);
    this.section.hidden = true;
    viewer.on("fit", (fit) => this.take(fit));
    viewer.on("scene", (scene) => (this.section.hidden = !scene.fit && !this.state));
  }

  take(fit) {
    const first = !this.state;
    for (const name of ["loss", "psnr"]) this.curves[name] = joined(this.curves[name], pairs(fit[name]));
    if (fit.ended && fit.state === "done" && this.state?.state !== "done") this.viewer.say("note", fit.ended);
    this.state = fit;
    this.section.hidden = false;
    const running = fit.state === "running";
    const done = fit.state === "done";
    this.pauseButton.disabled = this.stopButton.disabled = done;
    this.pauseButton.replaceChildren(icon(running ? "pause" : "play"), element("span", { text: running ? "Pause" : "Go on" }));
    const share = fit.progress ?? fit.step / (fit.steps || 1);
    Object.assign(this.bar, { value: share });
    const left = running && fit.seconds_left ? ` · ${seconds(fit.seconds_left)} left` : "";
    const word = { running: "", paused: " · paused", done: " · done" }[fit.state] ?? "";
    this.head.textContent = `Step ${fit.step}${fit.steps ? ` of ${fit.steps}` : ""}${word}${left}`;
    if (fit.rate && (first || document.activeElement?.closest(".rm-row") !== this.rate)) this.rate.set(fit.rate);
    this.draw();
  }

  pause() {
    if (!this.state || this.state.state === "done") return;
    const action = this.state.state === "running" ? "pause" : "go";
    this.viewer.send({ type: "fit", action });
  }

  stop() {
    this.viewer.send({ type: "fit", action: "stop" });
    this.stopButton.disabled = true;
  }

  draw() {
    if (!this.state) return;
    drawCurve(this.loss, this.curves.loss, { name: "loss", colour: "#f2b84b", log: true });
    drawCurve(this.psnr, this.curves.psnr, { name: "PSNR", unitName: "dB", colour: "#7ee787", log: false });
  }
}

// A curve with what is new of it: of steps that were there already the newer values.
function joined(old, fresh) {
  if (!fresh.length) return old;
  const all = [...old.filter((pair) => pair[0] < fresh[0][0]), ...fresh];
  return all.length <= MOST_POINTS ? all : all.filter((pair, i) => i % 2 || i > all.length - 100);
}

// [step, value] of a list of them, or of values alone.
function pairs(list) {
  return (list ?? []).map((each, i) => (Array.isArray(each) ? each : [i, each])).filter((pair) => Number.isFinite(pair[1]));
}

function drawCurve(canvas, points, { name, unitName = "", colour, log }) {
  const drawing = cleared(canvas);
  if (!drawing) return;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const box = { left: 40, right: width - 8, top: 18, bottom: height - 14 };
  drawing.font = "11px system-ui, sans-serif";
  drawing.textBaseline = "middle";
  drawing.fillStyle = colour;
  drawing.textAlign = "left";
  const shown = log ? points.filter((pair) => pair[1] > 0) : points;
  const last = shown[shown.length - 1];
  drawing.fillText(last ? `${name} ${short(last[1])} ${unitName}` : `${name}: none yet`, box.left, 8);
  if (!last) return;
  const level = (value) => (log ? Math.log10(value) : value);
  const levels = shown.map((pair) => level(pair[1]));
  let [low, high] = [Math.min(...levels), Math.max(...levels)];
  const room = Math.max(0.06 * (high - low), log ? 0.02 : 0.05);
  [low, high] = [low - room, high + room];
  const from = shown[0][0];
  const to = Math.max(last[0], from + 1);
  const x = (step) => box.left + ((box.right - box.left) * (step - from)) / (to - from);
  const y = (place) => box.bottom - ((box.bottom - box.top) * (place - low)) / (high - low);
  drawing.strokeStyle = "#2b3039";
  drawing.fillStyle = "#8f97a5";
  drawing.lineWidth = 1;
  drawing.textAlign = "right";
  for (const place of curveTicks(low, high, log)) {
    drawLine(drawing, box.left, y(place), box.right, y(place));
    drawing.fillText(short(log ? 10 ** place : place, 3), box.left - 5, y(place));
  }
  drawing.fillText(`step ${last[0]}`, box.right, height - 6);
  drawing.textAlign = "left";
  drawing.fillText(String(from), box.left, height - 6);
  drawing.beginPath();
  shown.forEach((pair, i) => drawing.lineTo(x(pair[0]), y(levels[i])));
  drawing.strokeStyle = colour;
  drawing.lineWidth = 1.6;
  drawing.lineJoin = "round";
  drawing.stroke();
  drawing.beginPath();
  drawing.arc(x(last[0]), y(level(last[1])), 2.6, 0, 7);
  drawing.fillStyle = colour;
  drawing.fill();
}

// Lines across a chart; of a logarithm at 1, 2, 5 times powers of ten where there is room for so few.
function curveTicks(low, high, log) {
  if (!log || high - low > 3) return ticks(low, high, 3);
  const all = [];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const part of [1, 2, 5]) all.push(power + Math.log10(part));
  }
  const inside = all.filter((place) => place >= low && place <= high);
  return inside.length > 1 ? inside.slice(0, 4) : ticks(low, high, 2);
}
