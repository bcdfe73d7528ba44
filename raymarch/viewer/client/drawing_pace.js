// Pace of pictures while something moves: how many pixels are drawn, and how long steps are, so that a frame keeps its
// time on any GPU. A frame's time is about proportional to rays by steps.

const FRAME = 28; // ms that a frame should take while something moves: 30 a second on a screen of 60 Hz
// Share of the pixels a side, and length of a step in those of the look.
const RUNGS = [[0.07, 4], [0.1, 3], [0.14, 3], [0.2, 3], [0.28, 2.5], [0.4, 2], [0.56, 2], [0.8, 2], [1, 2], [1, 1]];
const FIRST_RUNG = 5;
const MEMORY = 0.8; // weight of a frame beside the next
const CALM = 3; // frames in a row that would have had time for more, before more is drawn
const TRIAL = 40; // frames after which more is tried

// A frame takes a fixed time, of the browser and its compositor, and a time by ray and step. Both are told apart by
// frames of different rungs; fewer pixels cannot help against the first.
class DrawingPace {
  constructor(first = FIRST_RUNG) {
    Object.assign(this, { rung: first, calm: 0, sums: [0, 0, 0, 0, 0], fixed: 0, slope: 0 });
  }

  get share() {
    return RUNGS[this.rung][0];
  }

  get step() {
    return RUNGS[this.rung][1];
  }

  // Work of a rung in parts of that of a whole picture.
  work(rung) {
    const [share, step] = RUNGS[rung];
    return share ** 2 / step;
  }

  // What a frame of a rung would take [ms].
  time(rung) {
    return this.fixed + this.slope * this.work(rung);
  }

  // What a frame of the look's own steps in full size would take [ms].
  get whole() {
    return this.slope ? this.fixed + this.slope : Infinity;
  }

  // Fits time = fixed + slope * work to the frames of late, the older ones counting less.
  learn(ms) {
    const work = this.work(this.rung);
    this.sums = [1, work, work * work, ms, ms * work].map((term, i) => MEMORY * this.sums[i] + term);
    const [n, w, ww, t, tw] = this.sums;
    const spread = ww / n - (w / n) ** 2;
    if (spread > (0.1 * (w / n)) ** 2) {
      const slope = (tw / n - (t * w) / n ** 2) / spread;
      this.fixed = clamp((t - slope * w) / n, 0, t / n);
    }
    this.slope = Math.max(t / n - this.fixed, 0) / (w / n);
  }

  // A frame took so many ms: the next is drawn at the rung that keeps the time. One frame that takes far too long
  // compiled a shader, or waited for others.
  took(ms) {
    const odd = ms > 4 * this.time(this.rung);
    if (odd && !this.wasOdd) return void (this.wasOdd = true);
    this.wasOdd = false;
    this.learn(ms);
    const limit = Math.max(FRAME, 1.5 * this.fixed);
    const before = this.rung;
    while (this.rung > 0 && this.time(this.rung) > limit) this.rung--;
    if (this.rung < before) return void (this.calm = 0);
    if (this.rung + 1 === RUNGS.length) return;
    // Now and then more is tried than there seems to be time for.
    const more = this.time(this.rung + 1) < 0.85 * limit;
    this.calm += more ? TRIAL / CALM : 1;
    if (this.calm < TRIAL) return;
    this.calm = 0;
    this.rung++;
  }
}

// Whether the time of frames cannot be kept at all: the least that is drawn takes several frames.
function isTooSlow(pace, ms) {
  return pace.rung === 0 && ms > 6 * FRAME;
}

// Times of frames in the last second, and their rate.
class FrameRate {
  constructor() {
    this.times = [];
  }

  count(now = performance.now()) {
    this.times = this.times.filter((one) => now - one < 1000);
    this.times.push(now);
  }

  // Frames a second; 0 of too few.
  get rate() {
    const { times } = this;
    return times.length > 2 ? ((times.length - 1) * 1000) / (times[times.length - 1] - times[0]) : 0;
  }
}

function nextFrame() {
  return new Promise((done) => requestAnimationFrame(done));
}

function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}
