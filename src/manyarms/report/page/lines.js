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
