// State of one viewer: scene, camera, look; what is sent of them, and what comes.

const FLIGHT = 700; // ms

class Viewer {
  constructor(channel) {
    Object.assign(this, {
      channel,
      scene: null,
      listeners: new Map(),
      lookNow: {},
      edited: {},
      view: null,
      ended: false,
    });
    this.sender = new Sender(this);
    this.camera = new ViewCamera();
    this.start = this.camera.copy();
    this.picture = new Picture(this);
    this.moving = new MovingPicture(this);
    this.photos = new Photos(this);
    this.frusta = new Frusta(this);
    channel.onmessage = (header, bytes) => !this.ended && this.receive(header, bytes);
    channel.onstate = (...state) => !this.ended && this.tell("state", ...state);
    channel.onclose = () => channel.onstate("lost");
  }

  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, []);
    this.listeners.get(event).push(listener);
  }

  tell(event, ...what) {
    for (const listener of this.listeners.get(event) ?? []) listener(...what);
  }

  say(kind, text) {
    this.tell("message", kind, String(text));
  }

  send(message) {
    if (!this.ended) this.channel.send(message);
  }

  receive(header, bytes) {
    const { type } = header;
    if (type === "scene") this.takeScene(header);
    else if (type === "frame") this.picture.take(header, bytes);
    else if (type === "atlas") this.moving.take(header, bytes);
    else if (type === "photo") this.photos.take(header, bytes);
    else if (type === "file") download(header.name, bytes);
    else if (type === "error" || type === "note") this.say(type, header.text);
    if (["fit", "file", "progress", "probe", "command"].includes(type)) this.tell(type, header);
  }

  // A scene that comes again, as after a break or while a fit goes on, leaves camera and look as they are.
  takeScene(scene) {
    const first = !this.scene;
    this.scene = scene;
    if (!scene.modes.some((mode) => mode.name === this.edited.mode)) delete this.edited.mode;
    if (!scene.slices) delete this.edited.slice;
    this.lookNow = { ...scene.look, ...this.edited };
    this.frusta.take(scene);
    if (first) {
      this.camera.take(scene.camera ?? {});
      this.camera.forget();
      this.start = this.camera.copy();
    }
    this.photos.asked.clear();
    this.sender.pending = { ...this.edited };
    this.tell("scene", scene, first);
    this.sender.flush(false);
  }

  get centre() {
    const [low, high] = this.scene?.box ?? [
      [-1, -1, -1],
      [1, 1, 1],
    ];
    return between(low, high, 0.5);
  }

  get radius() {
    const [low, high] = this.scene?.box ?? [
      [-1, -1, -1],
      [1, 1, 1],
    ];
    return 0.5 * length(subtract(high, low));
  }

  resize(width, height) {
    const { camera } = this;
    if (camera.width === width && camera.height === height) return;
    Object.assign(camera, { width, height });
    camera.forget();
    this.picture.resize(width, height);
    this.moved(this.picture.frames > 0);
  }

  // What the mode that is shown has: { name, table, iso, values, shading, normals }.
  get mode() {
    return this.scene?.modes.find((mode) => mode.name === this.lookNow.mode) ?? this.scene?.modes[0] ?? {};
  }

  // Changes of the look, sent with the next frame of the screen.
  look(change, moving = false) {
    Object.assign(this.lookNow, change);
    Object.assign(this.edited, change);
    Object.assign(this.sender.pending, change);
    this.tell("look", change);
    this.moved(moving);
  }

  // The camera, or the look, is another.
  moved(moving = true) {
    this.camera.forget();
    this.tell("camera");
    if (this.scene) this.sender.moved(moving);
  }

  // Flies to another camera, and then does what is asked; it ends what else moves the camera.
  fly(to, then = () => {}) {
    this.tell("steer");
    this.stop();
    const from = this.camera.copy();
    const start = performance.now();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const frame = (now) => {
      const share = still ? 1 : clamp((now - start) / FLIGHT, 0, 1);
      const { width, height } = this.camera;
      this.camera = Object.assign(cameraOnFlight(from, to, share), { width, height });
      this.moved(share < 1);
      this.flight = share < 1 ? requestAnimationFrame(frame) : null;
      if (share >= 1) then();
    };
    this.flight = requestAnimationFrame(frame);
  }

  stop() {
    if (this.flight) cancelAnimationFrame(this.flight);
    this.flight = null;
  }

  // A move of the person's own: it ends a flight. A slice is seen whole: there it moves the slice.
  steer(change, along = 0) {
    if (!this.scene) return;
    const { slice } = this.lookNow;
    if (slice) return along ? this.tell("slide", along) : undefined;
    this.stop();
    this.tell("steer");
    change(this.camera);
    this.moved();
  }

  reset() {
    this.fly(this.start.copy());
  }

  // Turns the camera so that another direction of the world is up, as high above the volume as before.
  setUp(direction) {
    if (!this.scene) return;
    const to = this.camera.copy();
    to.turnUp(direction);
    this.start.turnUp(direction);
    this.fly(to);
  }

  // The axis of the world that is up, or the nearest one to what is.
  get upAxis() {
    const up = this.start.up;
    const axis = [0, 1, 2].sort((a, b) => Math.abs(up[b]) - Math.abs(up[a]))[0];
    return [0, 1, 2].map((k) => (k === axis ? Math.sign(up[k]) : 0));
  }

  // Looks along an axis of the world, with what is up upwards, where that is not the axis itself.
  lookAlong(direction) {
    if (!this.scene) return;
    const { upAxis } = this;
    const across = dot(upAxis, direction) === 0;
    const up = across ? upAxis : upAxis[1] === 0 ? [0, 1, 0] : [0, 0, 1];
    const to = this.camera.copy();
    to.lookAlong(direction, up, this.centre, this.radius);
    this.fly(to);
  }

  end() {
    this.ended = true;
    this.stop();
    this.sender.stop();
    this.moving.end();
    this.channel.close?.();
  }
}
