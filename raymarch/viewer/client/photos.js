// Photographs of a data set: asked for a few at a time, kept as small pictures, the one that is compared larger.

const SMALL = 160; // pixels across
const AT_ONCE = 4;
const PATIENCE = 8000; // ms until one that did not come is asked for again

class Photos {
  constructor(viewer) {
    Object.assign(this, { viewer, small: new Map(), wanted: [], asked: new Map(), large: null });
  }

  // The small picture of photograph i, or null while it is not here; it is asked for then.
  get(i) {
    const here = this.small.get(i);
    if (!here) this.want(i);
    return here ?? null;
  }

  want(i) {
    if (this.small.has(i) || this.wanted.includes(i)) return;
    const asked = this.asked.get(i);
    if (asked && performance.now() - asked < PATIENCE) return;
    this.wanted.push(i);
    this.next();
  }

  next() {
    const now = performance.now();
    for (const [i, time] of this.asked) if (now - time > PATIENCE) this.asked.delete(i);
    while (this.wanted.length && this.asked.size < AT_ONCE) {
      const i = this.wanted.shift();
      this.asked.set(i, now);
      this.viewer.send({ type: "photo", index: i, width: SMALL });
    }
  }

  // The photograph that is compared, so many pixels across; `large` has it when it came.
  wantLarge(i, width) {
    if (this.large?.index === i && this.large.width >= width) return;
    this.large = { index: i, width: 0, image: this.small.get(i) ?? null };
    this.viewer.send({ type: "photo", index: i, width });
  }

  async take(header, bytes) {
    const { index } = header;
    this.asked.delete(index);
    let image = null;
    try {
      image = await createImageBitmap(new Blob([bytes], { type: `image/${header.format ?? "jpeg"}` }));
    } catch {
      return this.viewer.say("error", `Photograph ${index} could not be shown.`);
    }
    const wide = header.width ?? image.width;
    if (wide <= SMALL || !this.small.has(index)) this.small.set(index, image);
    if (this.large?.index === index && wide > this.large.width) Object.assign(this.large, { image, width: wide });
    this.viewer.tell("photo", index);
    this.next();
  }

  forget() {
    this.small.clear();
    this.asked.clear();
    Object.assign(this, { wanted: [], large: null });
  }
}
