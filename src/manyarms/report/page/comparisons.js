// The policies of one problem: all their runs, and their differences.

// What means hide: the final regrets of single runs, and how many runs missed.

const BINS = 48;
const ROW = 46; // pixels: the height of a histogram

const missOf = ({ objective }) => (objective === "find"
  ? "A run missed if the arm that it recommends is not a best arm."
  : "A run missed if it never pulled a best arm.");

/** The places of a setting's policies, the least mean first. */
function byMean(setting) {
  const final = (k) => last(setting.series[k].mean);
  return setting.policies.map((_, k) => k).sort((a, b) => final(a) - final(b));
}

class Runs {
  constructor() {
    this.card = element("div", { class: "card" });
    this.width = 400;
    bar.watch(() => this.draw());
    new ResizeObserver(() => {
      const next = Math.round(this.card.querySelector(".strip")?.clientWidth ?? 0);
      if (!next || next === this.width) return;
      this.width = next;
      this.draw();
    }).observe(this.card);
  }

  draw() {
    const { setting, state } = bar;
    const shown = byMean(setting).filter((k) => !bar.hidden.has(setting.policies[k]));
    const values = shown.flatMap((k) => [...setting.runs[k].found, ...setting.runs[k].lost]);
    const least = Math.min(...values.filter((value) => value > 0));
    const log = state.logY && Number.isFinite(least);
    const high = Math.max(...values, 0) || 1;
    const scale = (log ? logScale : linearScale)(
      log ? Math.max(least, high / 1e6) / 1.1 : 0, high * (log ? 1.1 : 1.02), 6, this.width - 6,
      Math.max(2, Math.floor(this.width / 85)));
    this.card.replaceChildren(
      element("p", { class: "caption" }, `${playedOn(setting)} ${missOf(setting)}`),
      element("p", { class: "caption marks" },
        mark("found", "runs that found a best arm"), mark("lost", "runs that missed"),
        mark("mean", "mean"), mark("median", "median")),
      element("div", { class: "runs" },
        shown.map((k) => runRow(setting, k, scale, this.width)),
        shown.length ? runAxis(setting, scale, this.width) : "All policies are hidden."));
  }
}

const mark = (kind, words) => element("span", null,
  element("i", { class: `mark-${kind}`, "aria-hidden": "true" }), words);

/** How many runs each column stands for, if each of these values stands for `each` runs. */
function binned(values, each, scale, width) {
  const bins = new Array(BINS).fill(0);
  for (const value of values) {
    const place = Math.floor((scale.at(Math.max(value, scale.low)) / width) * BINS);
    bins[Math.min(BINS - 1, Math.max(0, place))] += each;
  }
  return bins;
}

function runRow(setting, k, scale, width) {
  const policy = setting.policies[k], { count, each, found, lost, miss_limits: [low, high] } = setting.runs[k];
  const bins = [found, lost].map((values, group) => binned(values, each[group], scale, width));
  const top = Math.max(...bins[0].map((number_, at) => number_ + bins[1][at]), 1), step = width / BINS;
  const column = (at, from, size, kind) => (size ? drawn("rect", {
    class: kind, x: (at * step).toFixed(1), width: Math.max(1, step - 1).toFixed(1),
    y: (ROW - ((from + size) / top) * (ROW - 8)).toFixed(1),
    height: Math.max(1.5, (size / top) * (ROW - 8)).toFixed(1),
  }) : null);
  const columns = bins[0].flatMap((size, at) =>
    [column(at, 0, size, "found"), column(at, size, bins[1][at], "lost")]);
  const at = (value) => scale.at(Math.max(value, scale.low)).toFixed(1);
  const { mean, median, q05, q95 } = setting.series[k];
  const share = setting.missed[k], missed = Math.round(share * count);
  const words = `${titleOf(policy)}: mean ${number(last(mean))}, median ${number(last(median))}, ` +
    `90 % of the runs from ${number(last(q05))} to ${number(last(q95))}`;
  return element("div", { "data-policy": policy },
    element("span", { class: "who" }, swatch(policy), titleOf(policy)),
    drawn("svg", {
      class: "strip series", style: lookOf(policy), viewBox: `0 0 ${width} ${ROW}`,
      height: ROW, role: "img", "aria-label": words,
    },
    drawn("path", { class: "grid", d: `M0 ${ROW - .5}H${width}` }), columns,
    drawn("path", { class: "median", d: `M${at(last(median))} 4V${ROW}` }),
    drawn("path", { class: "mean", d: `M${at(last(mean))} ${ROW}l-4-7h8Z` })),
    element("span", { class: "missed" },
      element("strong", null, `${percent(share)} missed`), " ",
      element("span", { class: "range" }, `${asWhole.format(missed)} of ${asWhole.format(count)}, ` +
        `95 % interval ${percent(low)} to ${percent(high)}`)));
}

function runAxis(setting, scale, width) {
  const ends = { left: 0, right: width, bottom: 2 };
  return element("div", { class: "axis-row" }, element("span"),
    drawn("svg", { class: "strip", viewBox: `0 0 ${width} 40`, height: 40, "aria-hidden": "true" },
      uprightTicks(scale, ends, null),
      drawn("text", { class: "name", x: width / 2, y: 37, "text-anchor": "middle" },
        `${lossOf(setting)} at the end of a run`)),
    element("span"));
}

// Who loses less than whom: paired differences with their intervals, and the table behind them.

const meaningOf = ({ objective }) => (objective === "find"
  ? "Simple regret is the best mean minus the mean of the recommended arm. Missed is the share of runs that recommend no best arm."
  : "The numbers are regrets at the end. Missed is the share of runs that never pulled a best arm, mostly missed that of runs that gave best arms less than a tenth of their pulls.");

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
  if (high !== null && high < 0) return ["good", "loses less"];
  return low !== null && low > 0 ? ["bad", "loses more"] : ["open", "undecided"];
}

/** One row for each other policy: intervals on a common axis, zero marked. */
function duels(setting, base) {
  const rows = setting.policies
    .map((policy, k) => ({ policy, k }))
    .filter((row) => row.k !== base && !bar.hidden.has(row.policy))
    .map((row) => ({ ...row, ...difference(setting, row.k, base) }))
    .sort((a, b) => a.usual.gap - b.usual.gap);
  const ends = rows.flatMap(({ mean, usual }) => [mean.low, mean.high, usual.low ?? 0, usual.high ?? 0]);
  const low = Math.min(...ends, 0), high = Math.max(...ends, 0), pad = 0.04 * (high - low || 1);
  const scale = linearScale(low - pad, high + pad, 0, 400, 5);
  return element("div", { class: "duel" }, rows.map((row) => duel(row, scale)));
}

function duel({ policy, mean, usual, above, runs, needed }, scale) {
  const [kind, words] = verdictOn(usual), [, average] = verdictOn(mean);
  const more = average === "undecided" ? `, ${moreRuns(needed, runs)}` : "";
  return element("div", { "data-policy": policy },
    element("span", { class: "who" }, swatch(policy), titleOf(policy)),
    intervalBar(policy, mean, usual, scale),
    element("span", { class: "gap" },
      element("strong", null, signed(usual.gap)), " ",
      element("span", { class: "range" }, usual.low === null ? "" : interval(usual.low, usual.high)),
      element("span", { class: "range mean" },
        `mean ${signed(mean.gap)} ${interval(mean.low, mean.high)}`)),
    element("span", { class: `says ${kind}` }, words,
      element("span", { class: "range mean" }, `more in ${above} of ${runs} runs`),
      element("span", { class: "range mean" }, `on average ${average}${more}`)));
}

/** How many more runs would decide, about; the estimate is for runs like these. */
function moreRuns(needed, runs) {
  if (needed === null || needed > 1e6) return "more than a million runs";
  const about = asWhole.format(Number(Math.max(1, needed - runs).toPrecision(2)));
  return `about ${about} more run${about === "1" ? "" : "s"}`;
}

/** The mean's interval as a band, the median's as a line with ends. */
function intervalBar(policy, mean, usual, scale) {
  const zero = scale.at(0), [from, to] = [mean.low, mean.high].map((end) => scale.at(end));
  // the bar is stretched to the width there is, its lines are not
  const stroke = (kind, d) => drawn("path", { class: kind, d, "vector-effect": "non-scaling-stroke" });
  const [least, most] = [usual.low ?? usual.gap, usual.high ?? usual.gap].map((end) => scale.at(end));
  return drawn("svg", {
    class: "bar series", style: lookOf(policy), viewBox: "0 0 400 30",
    preserveAspectRatio: "none", "aria-hidden": "true",
  },
  stroke("grid", "M0 15H400"), stroke("axis", `M${zero} 0V30`),
  stroke("line thick", `M${from} 15H${to}`),
  stroke("line", `M${least} 15H${most}M${least} 10V20M${most} 10V20`));
}

/** The final regrets, the best policy first; `base` is marked. */
function finals(setting, base) {
  const final = (k) => last(setting.series[k].mean), finds = setting.objective === "find";
  const order = byMean(setting);
  const rows = order.map((k) => {
    const policy = setting.policies[k], mean = final(k);
    const { least, most, median, q05, q95 } = setting.series[k];
    const [q99, worst, mostly] = setting.tails[k];
    return [
      element("td", { class: k === base ? "base" : null }, swatch(policy), titleOf(policy)),
      element("td", null, element("strong", null, number(mean))),
      element("td", null, interval(last(least), last(most))),
      [last(median), last(q05), last(q95), q99, worst]
        .map((value) => element("td", null, number(value))),
      [setting.missed[k], ...(finds ? [] : [mostly])]
        .map((share) => element("td", null, percent(share))),
    ];
  });
  const head = ["policy", "mean", "95 % interval", "median", "5 %", "95 %", "99 %", "worst", "missed"];
  return scrolling("Final regrets",
    numbersTable(finds ? head : [...head, "mostly missed"], rows),
    element("p", { class: "caption" }, meaningOf(setting)));
}
