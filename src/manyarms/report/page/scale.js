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
