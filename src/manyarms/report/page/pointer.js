// Reading a plot: the values under the mouse or the finger, and by the keyboard, aloud.

class Pointer {
  constructor(owner) {
    this.owner = owner;
    this.place = null; // which of the figure's xs
    this.tip = element("div", { class: "tip", hidden: true });
    this.spoken = element("p", { class: "unseen", "aria-live": "polite" });
    owner.plot.append(this.tip);
    for (const kind of ["pointermove", "pointerdown"]) {
      owner.svg.addEventListener(kind, (event) => this.at(this.nearest(event)));
    }
    for (const kind of ["pointerleave", "blur"]) owner.svg.addEventListener(kind, () => this.at(null));
    owner.svg.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** The values at the place, the largest first. */
  rows() {
    return this.owner.shown.lines
      .filter((line) => !missing(line.ys[this.place]))
      .map(({ policy, ys, lows, highs }) => ({
        policy,
        value: ys[this.place],
        range: lows ? interval(lows[this.place], highs[this.place]) : "",
      }))
      .sort((a, b) => b.value - a.value);
  }

  where() {
    const name = this.owner.figure.kind === "time" ? "t" : this.owner.axisName;
    return `${name} = ${this.owner.placeName(this.place)}`;
  }

  /** Go to a place, or away. */
  at(place) {
    const { svg, scales, shown } = this.owner;
    this.place = place;
    svg.querySelector(".guide")?.remove();
    this.tip.hidden = place === null || !scales;
    if (this.tip.hidden) return;
    const x = scales.x.at(shown.xs[place]);
    svg.append(drawn("path", { class: "guide", d: `M${x} ${scales.box.top}V${scales.box.bottom}` }));
    this.fillTip();
    this.moveTip((x * svg.clientWidth) / this.owner.width);
  }

  fillTip() {
    const roomy = this.owner.svg.clientWidth >= 500; // else intervals would hide the whole plot
    const rows = this.rows().map(({ policy, value, range }) =>
      element("tr", null,
        element("td", null, swatch(policy)),
        element("td", null, titleOf(policy)),
        element("td", { class: "value" }, this.owner.value(value)),
        roomy ? element("td", { class: "range" }, range) : null));
    this.tip.replaceChildren(element("strong", null, this.where()), element("table", null, rows));
  }

  /** Beside the guide, on the side where there is room. */
  moveTip(x) {
    const room = this.owner.plot.clientWidth - this.tip.offsetWidth;
    const left = x + 14 > room ? x - 14 - this.tip.offsetWidth : x + 14;
    this.tip.style.left = `${Math.max(0, Math.min(left, room))}px`;
  }

  nearest(event) {
    const { svg, scales, shown, width } = this.owner;
    if (!scales) return null;
    const bounds = svg.getBoundingClientRect();
    const x = ((event.clientX - bounds.left) / bounds.width) * width;
    const away = shown.xs.map((value) => Math.abs(scales.x.at(value) - x));
    return away.indexOf(Math.min(...away));
  }

  onKey(event) {
    const end = this.owner.shown.xs.length - 1;
    const stride = this.owner.figure.kind === "sweep" ? 1 : Math.max(1, Math.round(end / 20));
    const from = this.place ?? (event.key === "ArrowLeft" ? end + stride : -stride);
    const moves = {
      ArrowRight: Math.min(end, from + stride), ArrowLeft: Math.max(0, from - stride),
      Home: 0, End: end, Escape: null,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.at(moves[event.key]);
    const said = ({ policy, value, range }) => `${titleOf(policy)} ${this.owner.value(value)} ${range}`;
    this.spoken.textContent = this.place === null ? "" : `${this.where()}: ${this.rows().map(said).join("; ")}`;
  }
}
