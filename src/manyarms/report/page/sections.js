// The parts of the page that are text: what was run, the claims, how to repeat it.

// by verdict: its class, its sign, and what several claims do
const KINDS = {
  holds: ["good", "✓", "hold"],
  "holds in part": ["part", "◐", "hold in part"],
  fails: ["bad", "✗", "fail"],
  undecided: ["open", "?", "undecided"],
};
// which parts a verdict is due to
const DECIDES = {
  holds: ["holds"], "holds in part": ["fails", "undecided"], fails: ["fails"], undecided: ["undecided"],
};
const SHOWN_PARTS = 3; // of those that decide a claim
const LONG = 60; // characters of a fact that takes a whole row

function makeFacts() {
  const facts = report.facts.map(([name, value]) =>
    element("div", { class: value.length > LONG ? "long" : null },
      element("dt", null, name), element("dd", null, value)));
  const shown = report.settings.filter((setting) => !setting.hidden);
  const rows = shown.map(({ name, instance, specifications }) => [
    element("td", null, name || "–"),
    element("td", { class: "wrap" }, instance),
    element("td", { class: "wrap" }, specifications.join(", ")),
  ]);
  const title = shown.length === 1
    ? "The problem and the policies in full" : `All ${shown.length} problems in full`;
  return element("div", { class: "card" },
    element("dl", { class: "facts" }, facts),
    element("details", null,
      element("summary", null, title),
      scrolling("Problems", numbersTable(["problem", "instance", "policies"], rows, "numbers words"))));
}

function partText({ what, interval: [estimate, low, high], rule }) {
  const measured = [number(estimate), interval(low, high)].filter(Boolean).join(" ");
  return `${what}: ${measured}, required ${rule}`;
}

function partsTable(parts) {
  const rows = parts.map(({ what, interval: [estimate, low, high], rule, verdict, kept, runs }) => [
    element("td", { class: "wrap" }, what),
    element("td", null, number(estimate)),
    element("td", null, interval(low, high)),
    element("td", null, rule),
    element("td", null, runs ? `${asWhole.format(kept)} of ${asWhole.format(runs)}` : "–"),
    element("td", { class: KINDS[verdict][0] }, verdict),
  ]);
  return numbersTable(["what", "measured", "interval", "required", "in so many runs", "verdict"], rows);
}

function partCounts(parts) {
  const count = (verdict) => parts.filter((part) => part.verdict === verdict).length;
  return ` · of ${parts.length} parts, ${count("holds")} hold, ${count("fails")} fail, ` +
    `${count("undecided")} are undecided`;
}

/** What a reader of the paper would say, and what is true of the usual run. */
function otherReadings({ reads, usually, in_nearly_every_run: nearly, stand_in: apart }) {
  if (apart || missing(reads)) return "";
  return `As the paper reads, by means of 100 runs: ${reads}. ` +
    `In the usual run: ${usually}${nearly ? ", in nearly every run" : ""}.`;
}

function makeClaim(whole) {
  const { number: which, claim, reading, verdict, said, why, notes, parts } = whole;
  const [kind, sign] = KINDS[verdict];
  const deciding = DECIDES[verdict].flatMap((one) => parts.filter((part) => part.verdict === one));
  const reasons = [why, ...deciding.slice(0, SHOWN_PARTS).map((part) =>
    verdict === "holds in part" ? `${partText(part)}: ${part.verdict}` : partText(part))].filter(Boolean);
  if (deciding.length > SHOWN_PARTS) reasons.push(`and ${deciding.length - SHOWN_PARTS} more`);
  reasons.push(...notes);
  const all = scrolling(`Parts of claim ${which}`);
  const fillParts = () => { if (!all.firstChild) all.append(partsTable(parts)); };
  return element("article", { class: "card claim", "data-verdict": verdict },
    element("div", { class: "number" }, String(which)),
    element("div", { class: "body" },
      element("h3", null, claim),
      element("p", { class: "soft" }, reading),
      element("p", null,
        element("span", { class: `says ${kind}` }, `${sign} ${said}`),
        element("span", { class: "soft" }, parts.length > 1 ? partCounts(parts) : "")),
      element("p", { class: "soft" }, otherReadings(whole)),
      element("ul", null, reasons.map((reason) => element("li", null, reason))),
      parts.length > 1
        ? element("details", { ontoggle: fillParts },
          element("summary", null, `All ${parts.length} parts`), all)
        : null));
}

function makeClaims() {
  const claims = report.claims.map(makeClaim);
  const filters = Object.entries(KINDS).map(([verdict, [kind, sign, several]]) => {
    const mine = claims.filter((claim) => claim.dataset.verdict === verdict);
    const flip = ({ currentTarget }) => {
      const show = currentTarget.getAttribute("aria-pressed") !== "true";
      currentTarget.setAttribute("aria-pressed", String(show));
      for (const claim of mine) claim.hidden = !show;
    };
    const text = `${sign} ${mine.length} ${mine.length === 1 ? verdict : several}`;
    return element("button", { type: "button", class: kind, "aria-pressed": "true", onclick: flip }, text);
  });
  return [element("div", { class: "filters" }, filters), element("div", { class: "cards two" }, claims)];
}

async function copy(text, block) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // not allowed in some browsers for a file that was opened from disk: leave it selected
    getSelection().selectAllChildren(block);
    return document.execCommand("copy");
  }
  return true;
}

function codeBlock([title, text]) {
  const block = element("pre", null, text);
  const button = element("button", { type: "button", "aria-label": `Copy: ${title}` }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text, block)) ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return [element("h3", null, title), element("div", { class: "code" }, block, button)];
}

function makeRepeat() {
  const sums = report.sums.map(([name, sum]) =>
    [element("td", null, name), element("td", { class: "wrap" }, sum)]);
  return [
    ...report.repeat.flatMap(codeBlock),
    element("p", { class: "soft" },
      "The same versions with the same seed give the same bytes, on any machine and with any number " +
      "of workers. To check, compare the tables:"),
    scrolling("Checksums", numbersTable(["file", "SHA-256"], sums, "numbers words")),
  ];
}

// The page, from top to bottom.

function section(id, short, title, text, ...content) {
  document.getElementById("places").append(element("a", { href: `#${id}` }, short));
  document.getElementById("main").append(
    element("section", { id, "aria-labelledby": `${id}-title` },
      element("h2", { id: `${id}-title` }, title),
      text ? element("p", { class: "soft" }, text) : null,
      content));
}

document.getElementById("lead").textContent = report.lead;

const bar = new Bar();
section("run", "Run", "What was run", "", makeFacts());
document.getElementById("main").append(bar.node);
if (report.figures.length) {
  const cards = report.figures.map((figure, place) => new Figure(figure, place).card);
  section("figures", "Figures", "Figures",
    "Point at a plot to read its values. The bar above changes all figures and the sections below.",
    element("div", { class: `cards ${cards.length > 1 ? "two" : ""}` }, cards));
}
section("runs", "Runs", "What means hide",
  "A few runs that never meet a good arm can make up most of a mean. Each row shows the runs of one " +
  "policy: how much each of them had lost at the end, and how many of them missed.", new Runs().card);
section("differences", "Differences", "Differences",
  "Which policy loses less than another, and whether that is more than luck.", new Differences().card);
if (report.claims.length) {
  section("claims", "Claims", "Claims",
    "Each sentence of the paper is written as inequalities, its parts. An interval decides each part; " +
    "the intervals of a claim are right together with 95 %. A claim holds if all its parts do, holds in " +
    "part if some hold and some fail, fails if some fail and none holds, and is undecided if none fails " +
    "and some are undecided.", makeClaims());
}
section("repeat", "Repeat", "Repeat it", "", makeRepeat());
