// Parts of the packed volume, pulled in the background through the channel, a few at a time.

const PULLED = 2; // parts that are on their way
const PART_PATIENCE = 4000; // ms until a part is asked for again
const RECENT = 1000; // ms over which a channel's bound on bytes a second is kept

class AtlasParts {
  // `rate`: bytes a second that the channel carries at most, or null.
  constructor(send, rate = null) {
    Object.assign(this, { send, rate, header: null, parts: [], asked: new Map(), came: 0, log: [] });
  }

  // Begins with what was announced; what is there of that version stays.
  begin(header) {
    if (this.header?.version !== header.version) Object.assign(this, { parts: new Array(header.parts).fill(null), came: 0 });
    this.header = header;
    this.asked.clear();
    this.pull();
  }

  // Share that is here.
  get share() {
    return this.header ? this.came / Math.max(this.header.bytes, 1) : 0;
  }

  // Takes a part. Returns all bytes once they are here, else null.
  take({ version, part }, bytes) {
    if (version !== this.header?.version || this.parts[part]) return null;
    this.parts[part] = bytes.slice();
    this.asked.delete(part);
    this.came += bytes.length;
    this.log.push([performance.now(), bytes.length]);
    if (this.parts.every(Boolean)) return this.whole();
    this.pull();
    return null;
  }

  whole() {
    clearTimeout(this.later);
    const all = new Uint8Array(this.came);
    let at = 0;
    for (const part of this.parts) {
      all.set(part, at);
      at += part.length;
    }
    this.parts = [];
    return all;
  }

  pull() {
    clearTimeout(this.later);
    const now = performance.now();
    this.log = this.log.filter(([time]) => now - time < RECENT);
    const recent = this.log.reduce((sum, [, size]) => sum + size, 0);
    for (const [part, time] of this.asked) if (now - time > PART_PATIENCE) this.asked.delete(part);
    const room = !this.rate || (recent * 1000) / RECENT < this.rate;
    for (let i = 0; room && i < this.parts.length && this.asked.size < PULLED; i++) {
      if (this.parts[i] || this.asked.has(i)) continue;
      this.asked.set(i, now);
      this.send({ type: "atlas", version: this.header.version, part: i });
    }
    this.later = setTimeout(() => this.pull(), room ? PART_PATIENCE : 100);
  }

  end() {
    clearTimeout(this.later);
    Object.assign(this, { header: null, parts: [], came: 0 });
  }
}
