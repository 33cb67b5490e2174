// The bar: one place for all that a reader may choose. Figures and sections follow it.

class Bar {
  constructor() {
    this.hidden = new Set(); // policies
    this.state = { centre: "mean", band: "interval", logX: null, logY: false, problem: null, base: null, axis: null };
    this.followers = [];
    this.problems = report.settings
      .map((setting, value) => ({ ...setting, value }))
      .filter((setting) => !setting.hidden);
    this.state.problem = this.problems[0].value;
    this.policies = [...new Set(this.problems.flatMap(({ policies }) => policies))];
    this.legend = element("ul", { class: "legend", "aria-label": "Policies: press to hide or show" });
    this.bases = element("div");
    this.fillLegend();
    this.fillBases();
  }

  /** The setting that was chosen. */
  get setting() { return report.settings[this.state.problem]; }

  /** The policy that others are compared with: the chosen one, or the best. */
  get base() {
    const { policies, series } = this.setting, chosen = policies.indexOf(this.state.base);
    if (chosen >= 0) return chosen;
    const finals = series.map(({ mean }) => last(mean));
    return finals.indexOf(Math.min(...finals));
  }

  /** Call a function now, and whenever something was chosen. */
  watch(follow) {
    this.followers.push(follow);
    follow();
  }

  set(key, value) {
    this.state[key] = value;
    if (key === "problem") this.fillBases();
    for (const follow of this.followers) follow();
  }

  hide(policies) {
    this.hidden = new Set(policies);
    this.fillLegend();
    for (const follow of this.followers) follow();
  }

  toggle(policy) {
    const others = [...this.hidden].filter((other) => other !== policy);
    this.hide(this.hidden.has(policy) ? others : [...others, policy]);
  }

  only(policy) {
    this.hide(this.policies.filter((other) => other !== policy));
  }

  fillLegend() {
    const focused = this.legend.contains(document.activeElement) && document.activeElement.dataset.policy;
    const buttons = this.policies.map((policy) => element("button", {
      type: "button",
      "data-policy": policy,
      "aria-pressed": String(!this.hidden.has(policy)),
      title: "Click: hide or show. Double click or shift: only this one.",
      onclick: (event) => (event.shiftKey ? this.only(policy) : this.toggle(policy)),
      ondblclick: () => this.only(policy),
    }, swatch(policy), titleOf(policy)));
    if (this.hidden.size) {
      buttons.push(
        element("button", { type: "button", class: "all", onclick: () => this.hide([]) }, "Show all"));
    }
    this.legend.replaceChildren(...buttons.map((button) => element("li", null, button)));
    // they are new, and whoever came by keyboard wants to go on from the same one
    if (focused) buttons.find((button) => button.dataset.policy === focused)?.focus();
  }

  fillBases() {
    const { policies } = this.setting;
    const items = policies.map((policy, value) => ({ value, label: titleOf(policy) }));
    this.bases.replaceChildren(items.length > 1
      ? select("Compared with", [{ items }], this.base, (chosen) => this.set("base", policies[chosen])) : "");
  }

  problemPicker() {
    if (this.problems.length === 1) return null;
    const groups = [...new Set(this.problems.map(({ group }) => group))].map((label) => ({
      label,
      items: this.problems.filter(({ group }) => group === label)
        .map(({ value, name }) => ({ value, label: name })),
    }));
    return select("Problem", groups, this.state.problem, (place) => this.set("problem", place));
  }

  axisPicker() {
    const each = report.figures.map(({ choices }) => [...new Set(choices.map(({ axis }) => axis))]);
    const axes = [...new Set(each.filter((own) => own.length > 1).flat())];
    if (axes.length === 0) return null; // no figure could be drawn in another way
    const items = axes.map((axis, value) => ({ value, label: axisTitle(axis) }));
    return select("Against", [{ items }], 0, (chosen) => this.set("axis", axes[chosen]));
  }

  switches() {
    const kinds = { linear: "linear", log: "log" };
    return [
      segments("Show", { mean: "mean", median: "median" }, "mean", (value) => this.set("centre", value)),
      segments("Bands", { none: "off", interval: "95 %", spread: "runs" }, "interval",
        (value) => this.set("band", value)),
      segments("Regret axis", kinds, "linear", (value) => this.set("logY", value === "log")),
      segments("Horizontal axis", kinds, "linear", (value) => this.set("logX", value === "log")),
    ];
  }

  /** The bar itself: open where there is room, a line to open on a phone. */
  get node() {
    const chosen = element("details", { class: "chooser", open: matchMedia("(min-width: 900px)").matches },
      element("summary", null, "Choose policies, problem and axes"),
      element("div", { class: "controls" }, this.problemPicker(), this.bases, this.axisPicker(), this.switches()),
      this.legend);
    // what is jumped to must not be hidden behind the bar
    new ResizeObserver(() => {
      document.documentElement.style.scrollPaddingTop = `calc(3.2rem + ${chosen.offsetHeight}px)`;
    }).observe(chosen);
    return chosen;
  }
}
