// The picture while something moves, marched here of the packed volume, where the browser has WebGL2. At rest the
// server's own picture is shown. What cannot be drawn here the server draws while it moves, too.

const ASK_AFTER = 150; // ms after the first picture
const TURNING = 200; // ms between words to the server that this page draws itself
const SHARP = 120; // ms that one picture in full size may take as motion ends
const SLOW = 8; // frames that are far too slow, after which the server draws
const RESTING = 10000; // ms that it does so
const GONE = "the GPU is gone";
const COVER = 200; // ms between what is known of how much a picture covers
const COVER_WIDTH = 40; // pixels
const COVER_SHARE = 0.2; // of the pixels a side, from which on there is time for that

class MovingPicture {
  constructor(viewer) {
    Object.assign(this, { viewer, key: null, state: "none", why: "", raymarcher: null, frame: null, frames: 0 });
    Object.assign(this, { running: false, wanted: false, told: 0, slow: 0, packed: 0, covered: 0, floor: 0 });
    this.pace = new DrawingPace();
    this.rate = new FrameRate();
    this.parts = new AtlasParts((message) => viewer.send(message), viewer.channel.rate ?? null);
    viewer.on("scene", (scene) => this.begin(scene.atlas ?? null));
    viewer.on("frame", (header) => this.seen(header));
    viewer.on("look", () => (this.looked = null));
  }

  // Another scene: what was packed of another volume is of no use.
  begin(atlas) {
    clearTimeout(this.asking);
    this.asking = this.looked = this.frame = null;
    if (!atlas || this.state === "unable") return;
    if (atlas.key !== this.key) {
      this.parts.end();
      Object.assign(this, { key: atlas.key, record: null, packed: 0 });
      this.set(atlas.why ? "not" : "none", atlas.why);
    }
    if (!atlas.why && this.viewer.picture.frames) this.askSoon();
  }

  set(state, why = "") {
    Object.assign(this, { state, why });
    this.viewer.tell("drawing");
  }

  // The server's pictures say the window of values; after the first one the volume is asked for.
  seen(header) {
    const mode = this.viewer.sender.sent.get(header.id)?.mode;
    if (mode && !header.slice) Object.assign(this, { frame: { mode, window: header.window }, looked: null });
    if (this.state === "none" && this.key !== null) this.askSoon();
  }

  askSoon() {
    if (this.asked === this.key && this.state !== "none") return this.viewer.send({ type: "atlas" });
    this.asking ??= setTimeout(() => {
      this.asking = null;
      const lacks = missingHere();
      if (lacks) return this.set("unable", lacks);
      this.asked = this.key;
      if (this.state === "none") this.set("asked");
      this.viewer.send({ type: "atlas" });
    }, ASK_AFTER);
  }

  async take(header, bytes) {
    if (header.why) return this.set("not", header.why);
    if (header.packed !== undefined) {
      this.packed = header.packed;
      if (this.state === "asked") this.viewer.tell("drawing");
      return;
    }
    if (header.part === undefined) {
      if (header.version === this.record?.version && this.key === this.keyOf) return;
      this.coming = header.record;
      this.parts.begin(header);
      if (this.state === "asked") this.set("coming");
      return;
    }
    const all = this.parts.take(header, bytes);
    this.viewer.tell("drawing");
    if (all) await this.use(this.key, { ...this.coming, version: header.version }, all);
  }

  // Puts what came in the place of what there was.
  async use(key, record, packed) {
    try {
      const volume = await unpackVolume(record, packed);
      if (key !== this.key || this.viewer.ended || this.state === "unable") return;
      if (this.raymarcher) this.raymarcher.setVolume(volume);
      else this.raymarcher = this.made(volume);
      Object.assign(this, { record, keyOf: key, looked: null });
      if (this.raymarcher.gl.isContextLost()) this.set("lost", GONE);
      else if (this.state !== "slow") this.set("ready");
    } catch (error) {
      this.set("unable", error.message);
    }
  }

  made(volume) {
    const canvas = element("canvas", { width: 1, height: 1 });
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.set("lost", GONE);
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.raymarcher.prepare();
      this.looked = null;
      this.set("ready");
    });
    return new Raymarcher(canvas, volume);
  }

  // Whether this page draws what is looked at now.
  get draws() {
    if (this.state !== "ready" && !(this.record && this.keyOf === this.key && this.state === "coming")) return false;
    if (this.looked) return this.looked.look !== undefined;
    this.looked = marchLook(this.viewer, this.record, this.frame);
    this.fresh = true;
    return this.looked.look !== undefined;
  }

  // Whether marks wait until it rests: without a GPU each of their layers takes as long as the picture.
  get withoutMarks() {
    return Boolean(this.viewer.sender.moving && this.draws && this.raymarcher?.isSoftware);
  }

  // Something moved: a picture with the screen's next frame. The server hears that it need not draw.
  moved() {
    const now = performance.now();
    if (!this.wanted) this.since = now;
    this.wanted = true;
    this.floor = this.viewer.sender.id + 1; // pictures of cameras that were said before are of the past
    if (now - this.told > TURNING) {
      this.told = now;
      this.viewer.send({ type: "turning" });
    }
    this.run();
  }

  // Motion is over, and said with the camera of this number: one picture in full size, where that takes no time.
  rests(id) {
    this.floor = Math.min(this.floor, id);
    this.told = 0;
    if (this.painted !== id - 1 || !this.draws || this.pace.share === 1) return;
    if (this.pace.whole < SHARP && this.raymarcher) this.paint(1, EXACT);
  }

  async run() {
    if (this.running) return;
    this.running = true;
    try {
      while (this.wanted && !this.viewer.ended) {
        await nextFrame();
        this.wanted = false;
        if (!this.draws) break;
        const begun = performance.now();
        this.paint(this.pace.share, quickSteps(this.pace.step));
        if (!(await this.raymarcher.finished())) break;
        const took = performance.now() - begun;
        this.slow = isTooSlow(this.pace, took) ? this.slow + 1 : 0;
        if (this.slow > SLOW) this.rest();
        this.pace.took(took);
      }
    } catch (error) {
      this.set("unable", error.message);
    } finally {
      this.running = false;
    }
  }

  // Leaves it to the server for a while.
  rest() {
    this.slow = 0;
    this.set("slow", "this browser's graphics are busy, or slower than the server");
    this.resting = setTimeout(() => this.state === "slow" && this.set("ready"), RESTING);
  }

  // Marches the camera as it is now onto the picture.
  paint(share, quick) {
    const { viewer, raymarcher } = this;
    const { picture, sender, camera } = viewer;
    if (this.fresh) raymarcher.setLook(this.looked.look);
    this.fresh = false;
    const record = recordOfCamera(camera);
    raymarcher.draw(record, share, quick);
    picture.paintHere(raymarcher.canvas);
    const now = performance.now();
    if (now - this.covered > COVER && share > COVER_SHARE) {
      this.covered = now;
      picture.cover = raymarcher.cover(record, COVER_WIDTH);
    }
    this.frames++;
    this.rate.count(now);
    this.painted = sender.id;
    sender.drawnHere(camera.copy(), now - this.since);
    viewer.tell("drawn", { frames: this.frames, rate: this.rate.rate, share });
  }

  // What the status line says of it.
  get words() {
    const percent = (share) => `${Math.round(100 * share)} %`;
    if (this.state === "asked") return this.packed ? `packing ${percent(this.packed)}` : "packing";
    if (this.state === "coming") return `volume ${percent(this.parts.share)}`;
    return "";
  }

  // And what it says when it is pointed at.
  get hint() {
    const looked = this.draws ? null : this.looked?.why;
    if (this.state === "ready" && looked) return `While it moves the server draws: ${looked} is not drawn here`;
    if (this.state === "ready") {
      const { samples, of } = this.record;
      const thin = samples.join() === of.join() ? "all samples" : `${samples.join(" × ")} of ${of.join(" × ")} samples`;
      return `While it moves this browser draws, of ${thin}`;
    }
    return this.why ? `While it moves the server draws: ${this.why}` : "";
  }

  end() {
    clearTimeout(this.asking);
    clearTimeout(this.resting);
    this.parts.end();
    this.raymarcher?.end();
  }
}

// What a browser lacks to march a volume; "" where it has all.
function missingHere() {
  if (typeof DecompressionStream === "undefined") return "this browser has no DecompressionStream";
  const tried = element("canvas", { width: 1, height: 1 }).getContext("webgl2");
  if (!tried) return "this browser has no WebGL2";
  tried.getExtension("WEBGL_lose_context")?.loseContext();
  return "";
}
