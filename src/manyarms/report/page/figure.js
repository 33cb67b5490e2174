// A figure: its plot, its key, and its values as a table; and how its values are read.

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

const AXES = {
  alpha: "hardness α", horizon: "horizon T (pulls)", n: "arms n", m: "best arms m",
  size: "size of the set",
};
const axisTitle = (axis) => AXES[axis] || axis.replaceAll("_", " ");
const BANDS = {
  mean: { interval: "95 % interval of the mean", spread: "5 % to 95 % of the runs" },
  median: { interval: "95 % interval of the median", spread: "5 % to 95 % of the runs" },
};
const TABLE_ROWS = 12;
const PRINTED = 661; // wide, on paper: a width that no screen is likely to have

class Figure {
  constructor(figure, place) {
    this.figure = figure;
    this.choice = figure.choices[0];
    this.width = 640;
    this.printing = false;
    this.svg = drawn("svg", {
      role: "group", tabindex: 0, "aria-roledescription": "interactive plot",
      "aria-label": `${figure.title}. Left and right arrows read the values.`,
    });
    this.plot = element("div", { class: "plot" }, this.svg);
    this.key = element("ul", { class: "lines" });
    this.caption = element("p", { class: "caption" });
    this.table = scrolling(`Values of ${figure.title}`);
    this.values = element("details", { ontoggle: () => this.fillTable() },
      element("summary", null, "Values as a table"), this.table);
    this.pointer = new Pointer(this);
    bar.watch(() => this.update());
    this.watchWidth();
    this.card = element("article", { class: "card", id: `figure-${place}` },
      element("h3", null, figure.title), element("p", { class: "soft" }, figure.text),
      this.plot, this.key, this.caption,
      this.pointer.spoken, this.values);
  }

  /** Follow the bar: what is drawn against what, and on which problem. */
  update() {
    const { axis, problem } = bar.state, { choices } = this.figure;
    const along = choices.filter((choice) => choice.axis === axis);
    const fitting = along.length ? along : choices;
    this.choice = fitting.find(({ settings }) => settings.includes(problem)) || fitting[0];
    const { x, names } = this.choice;
    const positive = !names && (!x || x.every((value) => value > 0));
    const logX = bar.state.logX ?? Boolean(this.figure.log);
    this.state = this.figure.kind === "curves"
      ? { centre: "mean", band: "none", logX: false, logY: false }
      : { ...bar.state, logX: logX && positive };
    this.draw();
  }

  get axisName() {
    if (this.figure.axis) return this.figure.axis;
    if (this.figure.kind === "time") return "time t (pulls)";
    return axisTitle(this.choice.axis);
  }

  get valueName() {
    const when = this.figure.kind === "sweep" ? "at the end" : "up to time t";
    const found = report.settings[this.choice.settings[0]].objective === "find";
    return this.figure.value || `${this.state.centre} ${found ? "simple regret" : `regret ${when}`}`;
  }

  /** A value of this figure, as text. */
  value(number_) {
    return this.figure.kind === "curves" && number_ < 10 ? number_.toFixed(3) : number(number_);
  }

  /** A place on the axis, as text. */
  placeName(k) {
    if (this.choice.names) return this.choice.names[k];
    return this.figure.kind === "time" ? asWhole.format(this.shown.xs[k]) : atAxis(this.shown.xs[k]);
  }

  draw() {
    const { xs, lines } = linesOf(this.figure, this.choice);
    const visible = lines.filter((line) => !bar.hidden.has(line.policy));
    this.shown = { xs, lines: visible.map((line) => withBand(line, this.state)) };
    const begun = this.figure.kind === "time" && !this.state.logX ? fromZero(this.shown) : this.shown;
    this.scales = drawPlot(this.svg, begun.xs, begun.lines, this.width, {
      logX: this.state.logX,
      logY: this.state.logY,
      names: this.choice.names,
      everyMarker: this.figure.kind === "sweep",
      floor: this.figure.kind === "curves" ? Infinity : 0,
      flat: this.printing,
      axisName: this.axisName,
      valueName: this.valueName,
    });
    this.fillKey(visible);
    this.fillTable();
    this.caption.textContent = this.captionText();
    this.pointer.at(null);
  }

  captionText() {
    const setting = report.settings[this.choice.settings[0]];
    if (!setting.replications) return "";
    const { centre, band } = this.state, swept = this.figure.kind === "sweep";
    const words = [`${centre === "mean" ? "Mean" : "Median"} of ${runsOf(setting)}`];
    if (!swept) words.push(setting.instance);
    if (!swept || this.choice.axis !== "horizon") words.push(pullsOf(setting));
    const shaded = band !== "none" && setting.replications > 1;
    return `${words.join(", ")}.${shaded ? ` Shaded: ${BANDS[centre][band]}.` : ""}`;
  }

  /** What is drawn, the largest first. */
  fillKey(lines) {
    const end = (line) => last(line.series[this.state.centre].filter((value) => !missing(value))) ?? 0;
    const ordered = this.figure.kind === "curves" ? lines : [...lines].sort((a, b) => end(b) - end(a));
    this.key.replaceChildren(...ordered.map(({ policy }) => element("li", {
      onpointerenter: () => this.highlight(policy), onpointerleave: () => this.highlight(null),
    }, swatch(policy), titleOf(policy))));
  }

  highlight(policy) {
    this.plot.classList.toggle("pointing", policy !== null);
    for (const group of this.svg.querySelectorAll(".series")) {
      group.classList.toggle("pointed", group.dataset.policy === policy);
    }
  }

  fillTable() {
    if (!this.values.open) return;
    const { xs, lines } = this.shown;
    const stride = Math.ceil(xs.length / TABLE_ROWS), end = xs.length - 1;
    const cell = ({ ys, lows, highs }, k) => element("td", null,
      missing(ys[k]) ? "–" : this.value(ys[k]),
      lows ? element("div", { class: "soft" }, interval(lows[k], highs[k])) : null);
    const rows = xs.map((_, k) => k).filter((k) => (end - k) % stride === 0).map((k) =>
      [element("th", { scope: "row" }, this.placeName(k)), lines.map((line) => cell(line, k))]);
    this.table.replaceChildren(
      numbersTable([this.axisName, ...lines.map((line) => titleOf(line.policy))], rows));
  }

  watchWidth() {
    const fit = () => {
      const next = this.printing ? PRINTED : Math.round(this.plot.clientWidth) || this.width;
      if (next === this.width) return;
      this.width = next;
      this.draw();
    };
    const print = (printing) => () => { this.printing = printing; fit(); };
    new ResizeObserver(fit).observe(this.plot);
    window.addEventListener("beforeprint", print(true));
    window.addEventListener("afterprint", print(false));
  }
}
