// What the page knows, and how its numbers are written.

const report = JSON.parse(document.getElementById("data").textContent);

const missing = (value) => value === null || value === undefined;

const last = (values) => values[values.length - 1];

const asWhole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const asFraction = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A number as it stands in text and tables. */
function number(value) {
  if (missing(value)) return "–";
  const text = (Math.abs(value) >= 100 ? asWhole : asFraction).format(value || 0); // never -0
  return text.replace("-", "−");
}

const signed = (value) => (value > 0 ? `+${number(value)}` : number(value));

function interval(low, high) {
  return missing(low) || missing(high) ? "" : `[${number(low)}, ${number(high)}]`;
}

const percent = (share) => `${asFraction.format(100 * share)} %`;

function runsOf({ replications, fewest }) {
  const least = fewest < replications ? `${asWhole.format(fewest)} to ` : "";
  return `${least}${asWhole.format(replications)} run${replications === 1 ? "" : "s"}`;
}

const pullsOf = ({ times }) => `${asWhole.format(last(times))} pulls`;

const lossOf = ({ objective }) => (objective === "find" ? "simple regret" : "regret");

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const titleOf = (policy) => report.policies[policy].title;

function lookOf(policy) {
  const look = report.policies[policy];
  return `--light:${look.light};--dark:${look.dark}`;
}

/** What was played, in words. */
function playedOn(setting) {
  const { name, instance } = setting;
  return `${name ? `${name}: ` : ""}${instance}, ${pullsOf(setting)}, ${runsOf(setting)}.`;
}

/** The place of a pair among all pairs of `count` things, first < second. */
function pairPlace(first, second, count) {
  return first * count - (first * (first + 1)) / 2 + (second - first - 1);
}

/** What a loses beyond b, run by run: the median and the mean, each with its interval, and runs. */
function difference(setting, a, b) {
  const at = 10 * pairPlace(Math.min(a, b), Math.max(a, b), setting.policies.length);
  const [mean, low, high, median, least, most, above, below, runs, needed] =
    setting.pairs.slice(at, at + 10);
  const found = a < b
    ? { mean: { gap: mean, low, high }, usual: { gap: median, low: least, high: most }, above }
    : { mean: turned(mean, low, high), usual: turned(median, least, most), above: below };
  return { ...found, runs, needed };
}

/** An interval of b - a, as one of a - b; an end that is not known stays so. */
function turned(gap, low, high) {
  const minus = (end) => (end === null ? null : -end);
  return { gap: -gap, low: minus(high), high: minus(low) };
}
