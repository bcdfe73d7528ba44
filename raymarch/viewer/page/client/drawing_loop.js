// When what is drawn, and how finely: small and at once while something moves, fine and in strips at rest.

const STRIP = 45; // ms that a strip should take at rest
const REST = 160; // ms after the last move at which it is rest
const FIRST_RUNG_OF_PAGE = 2; // small, so that a first picture is soon there
const MOST = 20000; // ms that a picture at rest may take

class DrawingLoop {
  // `viewer` has a raymarcher, `record()` and `advance(now)`, which is true while a camera moves by itself.
  constructor(viewer) {
    Object.assign(this, { viewer, version: 1, shown: 0, touched: 0, running: false, perRay: 0.01 });
    this.fine = 0; // version that is shown at its finest
    this.pace = new DrawingPace(FIRST_RUNG_OF_PAGE);
    this.frames = new FrameRate();
  }

  // Something changed; `still` where it is no move, so that it may be fine at once.
  wake(still = false) {
    this.version++;
    this.viewer.moved();
    this.touched = still ? 0 : performance.now();
    this.run();
  }

  async run() {
    if (this.running) return;
    this.running = true;
    try {
      while (!this.stopped && this.fine !== this.version) await this.next();
    } catch (error) {
      this.viewer.failed(error);
    } finally {
      this.running = false;
    }
  }

  async next() {
    if (this.viewer.advance(performance.now())) {
      this.version++;
      this.touched = performance.now();
    }
    if (this.shown !== this.version) return this.small();
    if (performance.now() - this.touched < REST) return pause(20);
    return this.rest(this.version);
  }

  async small() {
    await nextFrame();
    const { viewer } = this;
    const begun = performance.now();
    this.shown = this.version;
    const record = viewer.record();
    viewer.raymarcher.draw(record, this.pace.share, quickSteps(this.pace.step));
    if (!(await viewer.raymarcher.finished())) return void (this.stopped = true);
    const took = performance.now() - begun;
    this.frames.count(begun);
    this.pace.took(took);
    this.perRay = this.pace.slope / (record.width * record.height);
    viewer.drawn(false);
  }

  get rate() {
    return this.frames.rate;
  }

  // One ray a pixel, then as many as the volume was made for, each picture in strips until something moves.
  async rest(version) {
    const { viewer } = this;
    const { width, height } = viewer.camera;
    const rays = width * height;
    const sides = [1, Math.max(viewer.page.supersample, 2)];
    for (const side of sides) {
      if (side > 1 && side * side * rays * this.perRay > MOST) break;
      if (!(await this.strips(version, side))) return;
      viewer.raymarcher.show(width, height, side);
    }
    if (!(await viewer.raymarcher.finished())) return void (this.stopped = true);
    this.fine = version;
    viewer.drawn(true);
  }

  async strips(version, side) {
    const { viewer } = this;
    const record = viewer.record();
    const [columns, rows] = [record.width * side, record.height * side];
    let many = Math.max(Math.round(STRIP / (this.perRay * columns)), 1);
    for (let end = rows; end > 0; ) {
      const first = Math.max(end - many, 0);
      const begun = performance.now();
      viewer.raymarcher.march(record, columns, rows, { first, end });
      if (!(await viewer.raymarcher.finished())) {
        this.stopped = true;
        return false;
      }
      many = clamp(Math.round((many * STRIP) / Math.max(performance.now() - begun, 1)), 1, 4 * many);
      end = first;
      if (version !== this.version || viewer.advance(performance.now())) return false;
    }
    return true;
  }
}
