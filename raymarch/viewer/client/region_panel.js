// Panel of what part of the world is seen: clipping box, slice.

class RegionPanel {
  constructor(viewer) {
    this.viewer = viewer;
    const change = (moving) => this.clip(moving);
    this.sides = AXIS_NAMES.map((name) =>
      rangeSlider({ label: name, low: 0, high: 1, value: [0, 1], change: (value, moving) => change(moving) }),
    );
    const whole = wordButton(
      "Whole box",
      "No clipping",
      () => {
        this.sides.forEach((side, k) => side.set(this.bounds(k)));
        viewer.look({ clip: null });
      },
      "box",
    );
    this.axis = select(
      [
        ["", "none"],
        ["0", "across x"],
        ["1", "across y"],
        ["2", "across z"],
      ],
      "",
      () => this.slice(false, true),
      "Slice",
    );
    this.position = slider({
      label: "Position",
      low: 0,
      high: 1,
      value: 0,
      change: (value, moving) => this.slice(moving),
    });
    this.rest = element(
      "div",
      { hidden: true },
      this.position,
      note("Wheel or drag over the picture moves the slice."),
    );
    viewer.on("slide", (share) => this.slide(share));
    this.sections = [
      section("Clipping box", false, ...this.sides, element("div", { class: "rm-buttons" }, whole)),
      (this.sliceSection = section("Slice", false, row("Plane", this.axis), this.rest)),
    ];
  }

  bounds(k) {
    const { box } = this.viewer.scene;
    return [box[0][k], box[1][k]];
  }

  take(scene, first) {
    this.sides.forEach((side, k) => {
      side.bounds(...this.bounds(k));
      const { clip } = this.viewer.lookNow;
      side.set(clip ? [clip.lower[k], clip.upper[k]] : this.bounds(k));
    });
    const { slice } = this.viewer.lookNow;
    this.sliceSection.hidden = !scene.slices;
    if (!first) return;
    this.axis.value = slice ? String(slice.axis) : "";
    this.rest.hidden = !slice;
    if (slice) {
      this.position.bounds(...this.bounds(slice.axis));
      this.position.set(slice.position);
    }
    this.unit(scene.unit);
  }

  unit(name) {
    const title = name ? `in ${name}` : "in units of the world";
    for (const each of [...this.sides, this.position]) each.title = title;
  }

  clip(moving) {
    const [lower, upper] = [0, 1].map((end) => this.sides.map((side) => side.value[end]));
    const whole = this.sides.every((side, k) => side.value.every((value, end) => value === this.bounds(k)[end]));
    this.viewer.look({ clip: whole ? null : { lower, upper } }, moving);
  }

  // Moves the slice by a share of the box.
  slide(share) {
    const [low, high] = this.bounds(Number(this.axis.value));
    this.position.set(tidy(clamp(this.position.value + share * (high - low), low, high), high - low));
    this.slice(true);
  }

  slice(moving, fresh = false) {
    const { value } = this.axis;
    this.rest.hidden = value === "";
    if (value === "") return this.viewer.look({ slice: null }, moving);
    const axis = Number(value);
    if (fresh) {
      const [low, high] = this.bounds(axis);
      this.position.bounds(low, high);
      this.position.first = tidy(0.5 * (low + high), high - low);
      this.position.set(this.position.first);
    }
    this.viewer.look({ slice: { axis, position: this.position.value } }, moving);
  }
}
