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
