// A figure: its plot, its switches, its legend, and its values as a table.

const AXES = {
  alpha: "hardness α", horizon: "horizon T (pulls)", n: "arms n", m: "best arms m",
  size: "size of the set",
};
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
    this.state = { centre: "mean", band: "interval", logX: Boolean(figure.log), logY: false };
    this.hidden = new Set(); // policies
    this.width = 640;
    this.printing = false;
    this.svg = drawn("svg", {
      role: "group", tabindex: 0, "aria-roledescription": "interactive plot",
      "aria-label": `${figure.title}. Left and right arrows read the values.`,
    });
    this.plot = element("div", { class: "plot" }, this.svg);
    this.legend = element("ul", { class: "legend", "aria-label": "Policies: press to hide or show" });
    this.caption = element("p", { class: "caption" });
    this.table = scrolling(`Values of ${figure.title}`);
    this.values = element("details", { ontoggle: () => this.fillTable() },
      element("summary", null, "Values as a table"), this.table);
    this.pointer = new Pointer(this);
    this.draw();
    this.watchWidth();
    this.card = element("article", { class: "card", id: `figure-${place}` },
      element("h3", null, figure.title), element("p", { class: "soft" }, figure.text),
      this.picker(), this.switches(), this.plot, this.legend, this.caption,
      this.pointer.spoken, this.values);
  }

  get axisName() {
    if (this.figure.axis) return this.figure.axis;
    if (this.figure.kind === "time") return "time t (pulls)";
    return AXES[this.choice.axis] || this.choice.axis.replaceAll("_", " ");
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
    const visible = lines.filter((line) => !this.hidden.has(line.policy));
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
    this.fillLegend(lines);
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

  fillLegend(lines) {
    const end = (line) => last(line.series[this.state.centre].filter((value) => !missing(value))) ?? 0;
    const ordered = this.figure.kind === "curves" ? lines : [...lines].sort((a, b) => end(b) - end(a));
    const focused = this.legend.contains(document.activeElement) && document.activeElement.dataset.policy;
    const buttons = ordered.map(({ policy }) => element("button", {
      type: "button",
      "data-policy": policy,
      "aria-pressed": String(!this.hidden.has(policy)),
      title: "Click: hide or show. Double click or shift: only this one.",
      onclick: (event) => (event.shiftKey ? this.only(policy, lines) : this.toggle(policy)),
      ondblclick: () => this.only(policy, lines),
      onpointerenter: () => this.highlight(policy),
      onpointerleave: () => this.highlight(null),
    }, swatch(policy), titleOf(policy)));
    if (this.hidden.size) {
      buttons.push(
        element("button", { type: "button", class: "all", onclick: () => this.hide([]) }, "Show all"));
    }
    this.legend.replaceChildren(...buttons.map((button) => element("li", null, button)));
    // they are new, and whoever came by keyboard wants to go on from the same one
    if (focused) buttons.find((button) => button.dataset.policy === focused)?.focus();
  }

  hide(policies) {
    this.hidden = new Set(policies);
    this.draw();
  }

  toggle(policy) {
    const others = [...this.hidden].filter((other) => other !== policy);
    this.hide(this.hidden.has(policy) ? others : [...others, policy]);
  }

  only(policy, lines) {
    this.hide(lines.map((line) => line.policy).filter((other) => other !== policy));
  }

  highlight(policy) {
    this.plot.classList.toggle("pointing", policy !== null && !this.hidden.has(policy));
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

  picker() {
    if (this.figure.choices.length === 1) return null;
    const items = this.figure.choices.map((choice, value) => ({ value, label: choice.label }));
    return select(this.figure.kind === "sweep" ? "Against" : "Problem", [{ items }], 0, (chosen) => {
      this.choice = this.figure.choices[chosen];
      if (this.choice.names) this.state.logX = false; // names have no logarithm
      this.draw();
    });
  }

  switches() {
    if (this.figure.kind === "curves") return null;
    const set = (key, value) => { this.state[key] = value; this.draw(); };
    const kinds = { linear: "linear", log: "log" };
    const positive = ({ x, names }) => !names && (!x || x.every((value) => value > 0));
    return element("div", { class: "controls" },
      segments("Show", { mean: "mean", median: "median" }, this.state.centre,
        (value) => set("centre", value)),
      segments("Bands", { none: "off", interval: "95 %", spread: "runs" }, this.state.band,
        (value) => set("band", value)),
      segments("y", kinds, "linear", (value) => set("logY", value === "log")),
      this.figure.choices.every(positive)
        ? segments("x", kinds, this.state.logX ? "log" : "linear",
          (value) => set("logX", value === "log"))
        : null);
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
