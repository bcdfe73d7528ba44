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
    this.stopButton = wordButton(
      "Stop and keep",
      "End the fit now, and keep the volume as it is",
      () => this.stop(),
      "stop",
    );
    this.rate = slider({
      label: "Rate",
      title: "Learning rate, as a part of what the settings say",
      low: 0.01,
      high: 10,
      value: 1,
      log: true,
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
    this.pauseButton.replaceChildren(
      icon(running ? "pause" : "play"),
      element("span", { text: running ? "Pause" : "Go on" }),
    );
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
  return (list ?? [])
    .map((each, i) => (Array.isArray(each) ? each : [i, each]))
    .filter((pair) => Number.isFinite(pair[1]));
}
