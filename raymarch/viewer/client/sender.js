// What is said of camera and look, and when: no faster than the screen, a look no faster than its pictures, and once
// more at rest. Keeps which camera a picture is of.

const REST = 160; // ms without a move until the picture may become sharp
const STEP = 25; // ms between cameras that are sent
const PATIENT = 250; // ms that a change of the look waits for the picture of the one before
const STALE = 300; // ms after which marks go ahead of a picture that does not come

class Sender {
  constructor(viewer) {
    Object.assign(this, {
      viewer,
      id: 0,
      sent: new Map(),
      pending: {},
      moving: false,
      last: 0,
      painted: 0,
      latency: null,
    });
    viewer.on("frame", (header) => this.shown(header));
  }

  // Camera or look are another: that is sent soon, and once more when nothing moves.
  moved(moving) {
    clearTimeout(this.rest);
    if (moving) this.rest = setTimeout(() => this.flush(false), REST);
    this.moving = moving;
    if (moving && this.viewer.moving.draws) {
      clearTimeout(this.waiting);
      this.waiting = null;
      return this.viewer.moving.moved();
    }
    const wait = Math.max(0, this.last + STEP - performance.now());
    this.waiting ??= setTimeout(() => this.flush(this.moving), wait);
  }

  flush(moving) {
    const { viewer } = this;
    clearTimeout(this.waiting);
    if (!moving) clearTimeout(this.rest);
    this.waiting = null;
    if (!viewer.scene || viewer.ended || viewer.camera.width < 2) return;
    const now = performance.now();
    const changed = Object.keys(this.pending).length > 0;
    if (moving && changed && now - (this.sent.get(this.id)?.time ?? 0) < PATIENT) {
      this.waiting = setTimeout(() => this.flush(this.moving), STEP);
      return;
    }
    Object.assign(this, { id: this.id + 1, last: now, moving });
    if (changed) viewer.send({ type: "look", ...this.pending });
    this.pending = {};
    const { camera, view } = viewer;
    this.sent.set(this.id, { camera: camera.copy(), view, time: now, mode: viewer.lookNow.mode });
    viewer.send({ type: "camera", id: this.id, ...camera.message(), moving, ...(view === null ? {} : { view }) });
    if (!moving) viewer.moving.rests(this.id);
    viewer.tell("sent");
  }

  // This page drew the picture itself, of a camera, so many ms after it moved.
  drawnHere(camera, latency) {
    Object.assign(this, { camera, latency, painted: performance.now() });
  }

  // A picture was painted: what was sent before it is of no use any more.
  shown({ id }) {
    const of = this.sent.get(id);
    this.painted = performance.now();
    if (of?.time) this.latency = this.painted - of.time;
    if (of) {
      of.time = null;
      this.camera = of.camera;
    }
    for (const older of this.sent.keys()) if (older < id) this.sent.delete(older);
  }

  // The camera that marks are drawn by: the picture's, or the newest where pictures stay out.
  get marksCamera() {
    const { picture, camera } = this.viewer;
    const next = [...this.sent].find(([id, one]) => id > picture.shown && one.time);
    const since = Math.max(next?.[1].time ?? Infinity, this.painted);
    const late = picture.shown < this.id && performance.now() - since > STALE;
    return late || !this.camera ? camera : this.camera;
  }

  // Whether the picture that is seen is the last, of the last that was said.
  get settled() {
    const { picture } = this.viewer;
    return picture.final && picture.shown === this.id;
  }

  stop() {
    clearTimeout(this.rest);
    clearTimeout(this.waiting);
  }
}
