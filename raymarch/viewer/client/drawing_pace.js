// Pace of pictures while something moves: how many pixels are drawn, and how long steps are, so that a frame keeps its
// time on any GPU. A frame's time is about proportional to rays by steps.

const FRAME = 24; // ms that a frame should take while something moves: 30 a second on a screen of 60 Hz
// Share of the pixels a side, and length of a step in those of the look.
const RUNGS = [[0.07, 4], [0.1, 3], [0.14, 3], [0.2, 3], [0.28, 2.5], [0.4, 2], [0.56, 2], [0.8, 2], [1, 2], [1, 1]];
const FIRST_RUNG = 5;
const CALM = 3; // frames in a row that would have had time for more, before more is drawn

class DrawingPace {
  constructor(first = FIRST_RUNG) {
    Object.assign(this, { rung: first, calm: 0 });
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

  // What a frame of the look's own steps in full size would take, by one that took so many ms.
  whole(took) {
    return took / this.work(this.rung);
  }

  // A frame took so many ms: the next is drawn at the rung that keeps the time.
  took(ms) {
    const now = this.work(this.rung);
    if (ms > FRAME) {
      this.calm = 0;
      while (this.rung > 0 && (ms * this.work(this.rung)) / now > FRAME) this.rung--;
      return;
    }
    const more = this.rung + 1 < RUNGS.length && (ms * this.work(this.rung + 1)) / now < 0.85 * FRAME;
    this.calm = more ? this.calm + 1 : 0;
    if (this.calm < CALM) return;
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
