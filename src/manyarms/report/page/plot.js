// One plot: its scales, axes, bands, lines and markers. It is drawn anew whenever something changes.

// From values to places on the screen: linear and logarithmic axes, with round ticks.

/** The round number 1, 2 or 5 times a power of ten that is not below `value`. */
function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const digit = [1, 2, 5, 10].find((d) => d * power >= value * (1 - 1e-9));
  return digit * power;
}

function linearScale(low, high, from, to, most) {
  const step = roundStep((high - low) / most || 1);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  const at = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  return { at, ticks, low, high };
}

// digits that may stand at a logarithmic axis: as many as fit
const DIGITS = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];

function logTicks(low, high, most) {
  const powers = [];
  for (let k = Math.floor(Math.log10(low)); 10 ** k <= high; k++) powers.push(10 ** k);
  const inside = (value) => value >= 0.999 * low && value <= 1.001 * high;
  const choices = DIGITS.map((digits) =>
    powers.flatMap((power) => digits.map((digit) => digit * power)).filter(inside));
  const ticks = choices.find((choice) => choice.length <= most) || last(choices);
  const stride = Math.ceil(ticks.length / most); // of many powers of ten only some
  return ticks.filter((_, place) => place % stride === 0);
}

function logScale(low, high, from, to, most) {
  const first = Math.log10(low), span = Math.log10(high) - first || 1;
  const at = (value) => from + ((Math.log10(Math.max(value, low)) - first) / span) * (to - from);
  return { at, ticks: logTicks(low, high, most), low, high };
}

/** A number as it stands at an axis. */
function atAxis(value) {
  if (Math.abs(value) >= 1e7) return `${Number((value / 1e6).toPrecision(6))}M`;
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential().replace("-", "−");
  const text = Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 });
  return text.replace("-", "−");
}

/** The ends of an axis that shows all values: from zero, or from the smallest positive one. */
function regretDomain(values, logarithmic, floor) {
  const shown = values.filter((value) => !missing(value) && (!logarithmic || value > 0));
  if (shown.length === 0) return null;
  const high = shown.reduce((a, b) => Math.max(a, b));
  const low = shown.reduce((a, b) => Math.min(a, b));
  if (logarithmic) {
    const bottom = Math.max(low, high / 1e6);
    return [bottom / 1.1, high * 1.1];
  }
  const from = Math.min(floor, low);
  const step = roundStep((1.03 * high - from) / 6 || 1) / 2;
  return [from, from + step * Math.ceil((1.03 * high - from) / step || 1)];
}

// What is drawn.

const MARKERS = {
  o: "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
  s: "M-3.5-3.5H3.5V3.5H-3.5Z",
  "^": "M0-5L5 4H-5Z",
  v: "M0 5L5-4H-5Z",
  "<": "M-5 0L4 5V-5Z",
  ">": "M5 0L-4 5V-5Z",
  D: "M0-4L4 0L0 4L-4 0Z",
  P: "M-1.6-4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6V-1.6H-1.6Z",
  p: "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4Z",
  "*": "M0.0 -5.6L1.4 -1.9L5.3 -1.7L2.2 0.7L3.3 4.5L0.0 2.3L-3.3 4.5L-2.2 0.7L-5.3 -1.7L-1.4 -1.9Z",
  h: "M0-4.6L4-2.3V2.3L0 4.6L-4 2.3V-2.3Z",
};
const WIDTH = 2; // of lines, which lengths of dashes are multiples of
const MARKS = 9; // on a line over time: enough to tell it, not so many as to hide it

const dashesOf = (look) => look.dashes.map((length) => length * WIDTH).join(" ") || null;

function markerAt(look, x, y) {
  if (!MARKERS[look.marker]) return null;
  return drawn("path", {
    d: MARKERS[look.marker],
    class: look.filled ? "dot" : "dot hollow",
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
  });
}

function swatch(policy) {
  const look = report.policies[policy];
  return drawn(
    "svg", { class: "swatch series", style: lookOf(policy), viewBox: "0 0 34 14", "aria-hidden": "true" },
    drawn("path", { class: "line", d: "M0 7H34", "stroke-dasharray": dashesOf(look) }),
    markerAt(look, 17, 7));
}

/** A path through the points there are; a gap where a value is missing. */
function pathThrough(points) {
  let path = "", pen = "M";
  for (const point of points) {
    if (point === null) pen = "M";
    else {
      path += `${pen}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
      pen = "L";
    }
  }
  return path;
}

function bandOf(line, xs, x, y) {
  const whole = xs.map((_, k) => k).filter((k) => !missing(line.lows[k]) && !missing(line.highs[k]));
  const edge = (values) => whole.map((k) => [x.at(xs[k]), y.at(Math.max(values[k], y.low))]);
  const above = edge(line.highs), below = edge(line.lows).reverse();
  if (whole.length > 1) return drawn("path", { class: "band", d: `${pathThrough([...above, ...below])}Z` });
  return drawn("path", { class: "line", d: pathThrough([...above, ...below]) });
}

/** One of `count` lines: its band, itself, and markers elsewhere than its neighbours'. */
function drawLine(line, xs, x, y, options, order, count) {
  const look = report.policies[line.policy];
  const shown = (value) => !missing(value) && !(options.logY && value <= 0);
  const points = line.ys.map((value, k) => (shown(value) ? [x.at(xs[k]), y.at(value)] : null));
  const step = options.everyMarker ? 1 : Math.max(1, Math.floor(xs.length / MARKS));
  const start = step - 1 - Math.floor((order * step) / count);
  const marked = points.filter((point, k) => point && (options.everyMarker || k % step === start));
  return drawn("g", { class: "series", style: lookOf(line.policy), "data-policy": line.policy },
    line.lows ? bandOf(line, xs, x, y) : null,
    drawn("path", { class: "line", d: pathThrough(points), "stroke-dasharray": dashesOf(look) }),
    marked.map((point) => markerAt(look, ...point)));
}

function acrossTicks(y, box) {
  return y.ticks.flatMap((value) => [
    drawn("path", { class: "grid", d: `M${box.left} ${y.at(value)}H${box.right}` }),
    drawn("text", { x: box.left - 7, y: y.at(value) + 4, "text-anchor": "end" }, atAxis(value)),
  ]);
}

function uprightTicks(x, box, names) {
  let taken = -Infinity; // how far to the right labels reach
  return x.ticks.flatMap((value) => {
    const label = names ? names[value] : atAxis(value), half = 3.6 * label.length;
    const at = x.at(value), middle = Math.min(at, box.right + 12 - half); // else it sticks out
    const nodes = [drawn("path", { class: "axis", d: `M${at} ${box.bottom}v4` })];
    if (middle - half < taken) return nodes;
    taken = middle + half + 5;
    return [...nodes, drawn("text", { x: middle, y: box.bottom + 18, "text-anchor": "middle" }, label)];
  });
}

function axisNames(box, options) {
  const middle = (box.left + box.right) / 2;
  return [
    drawn("text", { class: "name", x: 2, y: 12 }, options.valueName),
    drawn("text", { class: "name", x: middle, y: box.bottom + 37, "text-anchor": "middle" }, options.axisName),
  ];
}

/** The scale along the bottom, with its ticks. */
function acrossScale(xs, box, options) {
  const room = options.everyMarker ? 14 : 0; // markers on the edge are cut else
  const most = Math.max(3, Math.floor((box.right - box.left) / 85));
  const make = options.logX ? logScale : linearScale;
  const x = make(xs[0], last(xs), box.left + room, box.right - room, most);
  // few places that were chosen are better ticks than round numbers
  if (options.names || (options.everyMarker && xs.length <= 12)) x.ticks = xs;
  return x;
}

/** Draw into `svg`; return the scales and the box, or null if there is nothing to show. */
function drawPlot(svg, xs, lines, width, options) {
  // flat on paper, so that two figures fit on a page
  const height = Math.round(options.flat ? 0.36 * width : Math.min(430, Math.max(250, 0.58 * width)));
  const values = lines.flatMap((line) => [line.ys, line.lows || [], line.highs || []]).flat();
  const domain = regretDomain(values, options.logY, options.floor);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (!domain) {
    const why = lines.length ? "No value above zero: choose the linear axis." : "All policies are hidden.";
    svg.replaceChildren(
      drawn("text", { class: "empty", x: width / 2, y: height / 2, "text-anchor": "middle" }, why));
    return null;
  }
  const box = { top: 26, bottom: height - 44, right: width - 14 };
  const y = (options.logY ? logScale : linearScale)(...domain, box.bottom, box.top, options.logY ? 8 : 6);
  box.left = 16 + 7 * Math.max(2, ...y.ticks.map((value) => atAxis(value).length));
  const x = acrossScale(xs, box, options);
  svg.replaceChildren(
    ...acrossTicks(y, box), ...uprightTicks(x, box, options.names),
    drawn("path", { class: "axis", d: `M${box.left} ${box.bottom}H${box.right}` }),
    ...axisNames(box, options),
    ...lines.map((line, order) => drawLine(line, xs, x, y, options, order, lines.length)));
  return { x, y, box };
}

// The lines of a figure, from the settings it shows.

const KEYS = ["mean", "least", "most", "median", "low", "high", "q05", "q95"];

/** The lines of a choice: common places `xs`, and for each policy its series at them. */
function linesOf(figure, choice) {
  const settings = choice.settings.map((place) => report.settings[place]);
  if (figure.kind !== "sweep") {
    const [setting] = settings;
    const lines = setting.policies.map((policy, k) => ({ policy, series: setting.series[k] }));
    return { xs: setting.times, lines };
  }
  const policies = [...new Set(settings.flatMap((setting) => setting.policies))];
  const lines = policies.map((policy) => ({
    policy,
    series: Object.fromEntries(
      KEYS.map((key) => [key, settings.map((setting) => finalOf(setting, policy, key))])),
  }));
  return { xs: choice.x, lines };
}

/** A policy's last value in a setting; null where it was not played. */
function finalOf(setting, policy, key) {
  const place = setting.policies.indexOf(policy);
  return place < 0 ? null : last(setting.series[place][key]);
}

/** What is drawn of a line: its centre, and its band if one is asked for. */
function withBand({ policy, series }, { centre, band }) {
  const line = { policy, ys: series[centre] };
  if (band === "none" || !series.least) return line;
  if (band === "spread") return { ...line, lows: series.q05, highs: series.q95 };
  if (centre === "median") return { ...line, lows: series.low, highs: series.high };
  return { ...line, lows: series.least, highs: series.most };
}

/** Nothing is lost before the first pull: a line over time begins at zero. */
function fromZero({ xs, lines }) {
  const zero = (values) => values && [missing(values[0]) ? null : 0, ...values];
  const begun = ({ policy, ys, lows, highs }) =>
    ({ policy, ys: zero(ys), lows: zero(lows), highs: zero(highs) });
  return { xs: [0, ...xs], lines: lines.map(begun) };
}
