// Who loses less than whom: paired differences with their intervals, and the table behind them.

class Differences {
  constructor() {
    this.card = element("div", { class: "card" });
    bar.watch(() => this.update());
  }

  update() {
    const { setting, base } = bar, several = setting.policies.length > 1;
    const title = several ? titleOf(setting.policies[base]) : null;
    this.card.replaceChildren(
      element("p", { class: "caption" }, this.words(setting, title)),
      duels(setting, base), finals(setting, several ? base : null));
  }

  words(setting, base) {
    const how = base
      ? ` ${capital(lossOf(setting))} of each policy minus that of ${base}, run by run on the same luck, with 95 % intervals.` : "";
    return `${playedOn(setting)}${how}`;
  }
}

function verdictOn({ low, high }) {
  if (high < 0) return ["good", "loses less"];
  return low > 0 ? ["bad", "loses more"] : ["open", "undecided"];
}

/** One row for each other policy: an interval on a common axis, zero marked. */
function duels(setting, base) {
  const rows = setting.policies
    .map((policy, k) => ({ policy, k }))
    .filter((row) => row.k !== base && !bar.hidden.has(row.policy))
    .map((row) => ({ ...row, ...difference(setting, row.k, base) }))
    .sort((a, b) => a.gap - b.gap);
  const ends = rows.flatMap((row) => [row.low, row.high]);
  const low = Math.min(...ends, 0), high = Math.max(...ends, 0), pad = 0.04 * (high - low || 1);
  const scale = linearScale(low - pad, high + pad, 0, 400, 5);
  return element("div", { class: "duel" }, rows.map((row) => duel(row, scale)));
}

function duel({ policy, gap, low, high }, scale) {
  const [kind, words] = verdictOn({ low, high });
  return element("div", { "data-policy": policy },
    element("span", { class: "who" }, swatch(policy), titleOf(policy)),
    intervalBar(policy, { gap, low, high }, scale),
    element("span", { class: "gap" },
      element("strong", null, signed(gap)), " ",
      element("span", { class: "range" }, interval(low, high))),
    element("span", { class: `says ${kind}` }, words));
}

function intervalBar(policy, { gap, low, high }, scale) {
  const zero = scale.at(0), middle = scale.at(gap);
  const from = scale.at(low), to = scale.at(high);
  // the bar is stretched to the width there is, its lines are not
  const stroke = (kind, d) => drawn("path", { class: kind, d, "vector-effect": "non-scaling-stroke" });
  return drawn("svg", {
    class: "bar series", style: lookOf(policy), viewBox: "0 0 400 30",
    preserveAspectRatio: "none", "aria-hidden": "true",
  },
  stroke("grid", "M0 15H400"), stroke("axis", `M${zero} 0V30`),
  stroke("line thick", `M${zero} 15H${middle}`),
  stroke("line", `M${from} 15H${to}M${from} 10V20M${to} 10V20`));
}

/** The final regrets, the best policy first; `base` is marked. */
function finals(setting, base) {
  const final = (k) => last(setting.series[k].mean);
  const order = byMean(setting);
  const rows = order.map((k) => {
    const policy = setting.policies[k], mean = final(k);
    const { least, most, median, q05, q95 } = setting.series[k];
    return [
      element("td", { class: k === base ? "base" : null }, swatch(policy), titleOf(policy)),
      element("td", null, element("strong", null, number(mean))),
      element("td", null, interval(last(least), last(most))),
      [median, q05, q95].map((values) => element("td", null, number(last(values)))),
      element("td", null, percent(setting.missed[k])),
    ];
  });
  return scrolling("Final regrets",
    numbersTable(["policy", "mean", "95 % interval", "median", "5 %", "95 %", "missed"], rows),
    element("p", { class: "caption" }, meaningOf(setting)));
}
