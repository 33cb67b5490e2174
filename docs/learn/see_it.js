// Draws the runs of simulations.js on the page docs/learn/see_it.md.
"use strict";

(() => {
  const ARMS = [100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];
  const PULLS = [500, 1000, 2000, 5000, 10000, 20000];
  const TITLES = { "moss": "MOSS", "moss-oracle": "MOSS Oracle", "quantile": "Quantile", "parallel": "Parallel", "moss++": "MOSS++", "empmoss++": "empMOSS++" };
  const PYTHON = {
    "moss": () => "ma.MOSS()", "moss-oracle": (s) => `ma.MOSSOracle(alpha=${s.alpha})`, "quantile": () => "ma.Quantile()",
    "parallel": () => "ma.Parallel(best_mean=0.9)",
    "moss++": (s) => `ma.MOSSPlusPlus(beta=${s.beta})`, "empmoss++": (s) => `ma.EmpMOSSPlusPlus(beta=${s.beta})`,
  };
  const RUNS = 10; // for each mean
  const byId = (id) => document.getElementById(id);
  const whole = (x) => Math.round(x).toLocaleString("en").replaceAll(",", "\u202f");
  const percent = (x) => `${Math.round(100 * x)} %`;

  function element(name, attributes = {}, ...children) {
    const svg = ["svg", "path", "line", "text", "rect", "circle", "g"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // ---------- what is asked for

  let policy = "moss++";

  function settings() {
    const n = ARMS[byId("n").value], T = PULLS[byId("T").value], alpha = Number(byId("alpha").value);
    const seed = Math.max(0, Math.min(999999, Math.floor(Number(byId("seed").value)) || 0));
    return { n, T, alpha, beta: Number(byId("beta").value), seed, m: Simulation.bestArms(n, T, alpha) };
  }

  function show(id, text) {
    byId(`${id}-shown`).value = text;
    byId(id).setAttribute("aria-valuetext", text);
  }

  // ---------- one run

  let runs = {}, asked = null, shownTime = 0, playing = 0;

  function simulateAll() {
    asked = settings();
    const instance = Simulation.planted(asked.n, asked.m);
    show("n", whole(asked.n));
    show("alpha", `${asked.alpha}: ${whole(asked.m)} best`);
    show("T", whole(asked.T));
    show("beta", `${asked.beta}`);
    runs = Object.fromEntries(Simulation.policies.map((name) => [name,
      Simulation.play({ policy: name, instance, horizon: asked.T, seed: asked.seed, alpha: asked.alpha, beta: asked.beta })]));
    byId("t").max = asked.T;
    for (const label of document.querySelectorAll("#simulation .policies label")) {
      label.querySelector("b").textContent = whole(runs[label.dataset.policy].regret[asked.T]);
    }
    stop();
    showTime(asked.T);
  }

  function makePolicies() {
    for (const name of Simulation.policies) {
      const input = element("input", { type: "radio", name: "policy", value: name });
      input.checked = name === policy;
      input.addEventListener("change", () => { policy = name; stop(); showTime(asked.T); problems.begin(); });
      document.querySelector("#simulation .policies").append(
        element("label", { "data-policy": name }, input, element("span", { class: "dot" }), TITLES[name], " ", element("b")));
    }
  }

  const ends = (run) => [...run.steps.slice(1), run.horizon];

  function showTime(t) {
    shownTime = t;
    byId("t").value = t;
    show("t", `pull ${whole(t)}`);
    drawRows(runs[policy], t);
    drawRegret(t);
    const kind = PYTHON[policy](asked);
    byId("python").textContent = `ma.simulate(${kind}, ma.instances.planted(n=${asked.n}, m=${asked.m}), ` +
      `horizon=${asked.T}, replications=1, seed=${asked.seed}, record_arms=True).arms[0, 0]`;
  }

  // By phase: how often each member was chosen until t, and how often that was a best arm.
  function pullsUntil(run, end) {
    const chosen = run.phases.map(() => new Map());
    for (let t = 0; t < end; t++) {
      const member = run.members[t], phase = chosen[run.phase[t]];
      const own = phase.get(member) ?? { member, pulls: 0, best: 0 };
      own.pulls++;
      own.best += run.groups[t] === 0 ? 1 : 0;
      phase.set(member, own);
    }
    return chosen.map((phase) => [...phase.values()].sort((a, b) => b.pulls - a.pulls || a.member - b.member));
  }

  const sum = (all, what) => all.reduce((total, own) => total + own[what], 0);

  function segment(kind, from, width, text = "") {
    const made = element("i", { class: kind, style: `left:${100 * from}%;width:${100 * width}%` });
    if (text && width > 0.09) made.textContent = text;
    return made;
  }

  function drawBar(all, length, bar) {
    let at = 0, rest = { pulls: 0, best: 0 };
    const flush = () => { // arms too thin to be seen one by one
      if (rest.pulls) bar.append(segment("other", at, rest.pulls / length), ...strip(at, rest, length));
      at += rest.pulls / length;
      rest = { pulls: 0, best: 0 };
    };
    for (const own of all) {
      const kind = own.member < 0 ? "mixture" : own.best ? "best" : "other";
      if (kind === "other" && own.pulls / length < 0.004) {
        rest.pulls += own.pulls;
        continue;
      }
      flush();
      bar.append(segment(kind, at, own.pulls / length, own.member < 0 ? `iteration ${-own.member}` : ""), ...strip(at, own, length));
      at += own.pulls / length;
    }
    flush();
  }

  function strip(at, own, length) {
    const parts = [];
    if (own.best) parts.push(segment("end best", at, own.best / length));
    if (own.best < own.pulls) parts.push(segment("end other", at + own.best / length, (own.pulls - own.best) / length));
    return parts;
  }

  function drawRows(run, t) {
    const rows = byId("rows"), said = [], until = pullsUntil(run, t), lengths = run.phases.map(() => 0);
    for (const k of run.phase) lengths[k]++;
    rows.replaceChildren();
    run.phases.forEach((phase, k) => {
      const all = until[k], length = lengths[k], best = sum(all, "best"), pulls = sum(all, "pulls");
      const set = `${whole(phase.real)} arm${phase.real === 1 ? "" : "s"}` +
        (phase.mixtures ? ` + ${phase.mixtures} mixture-arm${phase.mixtures === 1 ? "" : "s"}` : "");
      const told = pulls ? `${percent(best / pulls)} of ${whole(pulls)} pulls on best arms` : `${whole(length)} pulls to come`;
      const bar = element("div", { class: "bar" });
      drawBar(all, length, bar);
      const label = element("div", {}, element("b", {}, run.phases.length > 1 ? `${k + 1}. ` : "", set), element("br"), told);
      rows.append(element("div", { class: pulls ? "phase" : "phase later" }, label, bar));
      said.push(`${k + 1}: ${set}, ${told}`);
    });
    rows.setAttribute("aria-label", said.join("; "));
    byId("said").textContent = sentence(run, t, until);
  }

  function sentence(run, t, until) {
    if (t === 0) return "Nothing is pulled yet.";
    const k = run.phase[t - 1], all = until[k], top = all[0], pulls = sum(all, "pulls"), share = percent(top.pulls / pulls);
    if (policy === "parallel") {
      return `Subroutine ${k + 1}, on ${whole(run.phases[k].real)} arms, has lost least and runs. It got ${percent(pulls / t)} of all pulls.`;
    }
    const where = run.phases.length > 1 ? `In iteration ${k + 1}` : "So far";
    if (top.pulls === 1) return `${where} no member was pulled twice.`;
    if (top.member < 0) {
      return `${where} the mixture-arm of iteration ${-top.member} got ${share} of the pulls; ` +
        `${percent(top.best / top.pulls)} of these became pulls of best arms.`;
    }
    return `${where} ${top.best ? "a best arm" : "an arm that is not best"} got the most pulls, ${share}.`;
  }

  function step(by) {
    const all = [0, ...ends(runs[policy])];
    const next = by > 0 ? all.find((end) => end > shownTime) : all.findLast((end) => end < shownTime);
    stop();
    showTime(next ?? shownTime);
  }

  function stop() {
    cancelAnimationFrame(playing);
    playing = 0;
    byId("run").textContent = "Play";
  }

  function run() { // every iteration takes as long as any other
    if (playing) return stop();
    const all = [0, ...ends(runs[policy])], each = 6000 / Math.min(6, all.length - 1) / (all.length > 7 ? (all.length - 1) / 6 : 1);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let begun = null;
    byId("run").textContent = "Stop";
    const frame = (now) => {
      begun ??= now;
      const phase = (now - begun) / each, k = Math.floor(phase);
      if (k >= all.length - 1) {
        stop();
        return showTime(asked.T);
      }
      const share = still ? 0 : phase - k, t = Math.round(all[k] + share * (all[k + 1] - all[k]));
      if (t !== shownTime) showTime(t);
      playing = requestAnimationFrame(frame);
    };
    playing = requestAnimationFrame(frame);
  }

  // ---------- charts

  function canvas(place, height, label) {
    const width = Math.max(240, place.clientWidth);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" });
    place.setAttribute("aria-label", label);
    place.replaceChildren(svg);
    return { svg, width };
  }

  function ticks(most, count = 5) {
    const rough = most / count, power = 10 ** Math.floor(Math.log10(rough));
    const each = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough);
    return Array.from({ length: Math.floor(most / each + 1e-9) + 1 }, (_, k) => k * each);
  }

  function drawRegret(t) {
    const T = asked.T, most = Math.max(...Object.values(runs).map((run) => run.regret[T])) * 1.04;
    const told = Simulation.policies.map((name) => `${TITLES[name]} ${whole(runs[name].regret[t])}`).join(", ");
    const { svg, width } = canvas(byId("regret"), 260, `Regret after ${t} pulls: ${told}`);
    const [left, right, top, bottom] = [48, width - 12, 24, 222];
    const x = (s) => left + (right - left) * s / T, y = (r) => bottom - (bottom - top) * r / most;
    svg.append(element("text", { x: left, y: 12, class: "title" }, "Regret"),
      element("text", { x: right, y: 256, "text-anchor": "end" }, "pulls"));
    for (const value of ticks(most)) {
      svg.append(element("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }),
        element("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, whole(value)));
    }
    for (const value of ticks(T, width < 500 ? 3 : 5)) {
      svg.append(element("text", { x: x(value), y: 238, "text-anchor": value ? "middle" : "start" }, whole(value)));
    }
    const borders = policy === "parallel" ? [] : runs[policy].steps.slice(1); // it has too many
    for (const start of borders) svg.append(element("line", { x1: x(start), x2: x(start), y1: top, y2: bottom, class: "border" }));
    const settled = Math.min(T, most / 0.4);
    svg.append(element("path", { d: `M${x(0)} ${y(0)}L${x(settled)} ${y(0.4 * settled)}`, class: "settled" }));
    for (const name of [...Simulation.policies.filter((each) => each !== policy), policy]) {
      const regret = runs[name].regret, points = [];
      const until = name === policy ? t : T;
      for (let k = 0; k <= 300; k++) {
        const s = Math.round(until * k / 300);
        points.push(`${x(s).toFixed(1)} ${y(regret[s]).toFixed(1)}`);
      }
      svg.append(element("path", { d: `M${points.join("L")}`, class: name === policy ? "line chosen" : "line", "data-policy": name }));
    }
    svg.append(element("line", { x1: x(t), x2: x(t), y1: top, y2: bottom, class: "cursor" }),
      element("path", { d: `M${left} ${top}V${bottom}H${right}`, class: "axis" }));
  }

  // ---------- means of several runs, a few at a time, so that the page stays responsive

  function task(root, prepare, work, draw) {
    let current = 0, seen = false;
    const progress = root.querySelector(".progress");
    async function begin() {
      if (!seen) return;
      const own = ++current, state = prepare();
      draw(state);
      const jobs = work(state);
      for (let k = 0, until = performance.now() + 30; k < jobs.length; k++) {
        jobs[k]();
        if (performance.now() > until || k === jobs.length - 1) {
          draw(state);
          progress.textContent = k < jobs.length - 1 ? `Simulating: ${percent((k + 1) / jobs.length)}` : `${jobs.length} runs done.`;
          await new Promise((done) => setTimeout(done));
          if (own !== current) return;
          until = performance.now() + 30;
        }
      }
      root.dataset.done = own;
    }
    new IntersectionObserver((entries, observer) => { // nothing is played before it is looked at
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      seen = true;
      begin();
    }, { rootMargin: "200px" }).observe(root);
    return { begin: () => { delete root.dataset.done; begin(); }, redraw: (state) => draw(state) };
  }

  function row(name, title, values) {
    const first = element("td", {}, element("span", { class: "dot" }), title);
    return element("tr", { "data-policy": name }, first, ...values.map((value) => element("td", {}, value)));
  }

  // ---------- the price of adapting

  const priceRoot = byId("price");
  let priceState = null;

  const price = task(priceRoot, () => {
    const { n, T, beta, seed } = settings(), easy = Number(byId("easy").value), hard = Number(byId("hard").value);
    show("easy", `${easy}`);
    show("hard", `${hard}`);
    const sizes = [16, 64, 256, 1024].filter((size) => size < Math.min(n, T));
    const players = [
      ...sizes.map((size) => ({ policy: "moss", size, title: `MOSS on ${size} arms` })),
      { policy: "quantile", title: "Quantile" },
      { policy: "moss++", beta, title: `MOSS++, beta ${beta}` },
      { policy: "empmoss++", beta, title: `empMOSS++, beta ${beta}` },
    ].map((player) => ({ ...player, sums: [0, 0], counts: [0, 0] }));
    const both = [easy, hard].map((alpha) => Simulation.planted(n, Simulation.bestArms(n, T, alpha)));
    return (priceState = { players, both, T, seed });
  }, ({ players, both, T, seed }) => {
    const jobs = [];
    for (let replication = 0; replication < RUNS; replication++) {
      for (const player of players) {
        both.forEach((instance, k) => jobs.push(() => {
          player.sums[k] += Simulation.play({ ...player, instance, horizon: T, seed, replication }).regret[T];
          player.counts[k]++;
        }));
      }
    }
    return jobs;
  }, drawPrice);

  function drawPrice({ players }) {
    const known = players.filter((player) => player.counts[0] && player.counts[1])
      .map((player) => ({ ...player, at: player.sums.map((sum, k) => Math.max(1, sum / player.counts[k])) }));
    const place = priceRoot.querySelector(".chart"), height = 340;
    const told = known.map((player) => `${player.title}: ${whole(player.at[0])} and ${whole(player.at[1])}`).join("; ");
    const { svg, width } = canvas(place, height, `Regret on the easy and on the hard problem. ${told}`);
    const [left, right, top, bottom] = [52, width - 14, 26, height - 44];
    if (!known.length) return;
    const range = (k) => {
      const all = known.map((player) => player.at[k]);
      return [Math.min(...all) / 1.5, Math.max(...all) * 1.5].map(Math.log);
    };
    const [[x0, x1], [y0, y1]] = [range(0), range(1)];
    const x = (r) => left + (right - left) * (Math.log(r) - x0) / (x1 - x0);
    const y = (r) => bottom - (bottom - top) * (Math.log(r) - y0) / (y1 - y0);
    const bestX = Math.min(...known.map((player) => player.at[0])), bestY = Math.min(...known.map((player) => player.at[1]));
    svg.append(element("rect", { x: left, y: y(bestY), width: x(bestX) - left, height: bottom - y(bestY), class: "corner" }),
      element("text", { x: left, y: 14, class: "title" }, "Regret on the hard problem"),
      element("text", { x: right, y: height - 6, "text-anchor": "end", class: "title" }, "Regret on the easy problem"));
    const marks = [1, 2, 5].flatMap((k) => [1, 10, 100, 1000, 10000].map((power) => k * power)).sort((a, b) => a - b);
    let lastX = -99, lastY = 1e9;
    for (const mark of marks) {
      if (Math.log(mark) > x0 && Math.log(mark) < x1 && x(mark) - lastX > 44) {
        svg.append(element("line", { x1: x(mark), x2: x(mark), y1: top, y2: bottom, class: "grid" }),
          element("text", { x: x(mark), y: bottom + 16, "text-anchor": "middle" }, whole(mark)));
        lastX = x(mark);
      }
      if (Math.log(mark) > y0 && Math.log(mark) < y1 && lastY - y(mark) > 22) {
        svg.append(element("line", { x1: left, x2: right, y1: y(mark), y2: y(mark), class: "grid" }),
          element("text", { x: left - 6, y: y(mark) + 4, "text-anchor": "end" }, whole(mark)));
        lastY = y(mark);
      }
    }
    const sizes = known.filter((player) => player.size);
    svg.append(element("path", { d: `M${left} ${top}V${bottom}H${right}`, class: "axis" }),
      element("path", { d: sizes.map((p, k) => `${k ? "L" : "M"}${x(p.at[0])} ${y(p.at[1])}`).join(""), class: "sizes", "data-policy": "moss" }));
    const labels = [];
    for (const player of known) {
      const at = [x(player.at[0]), y(player.at[1])], text = player.size ? `${player.size}` : TITLES[player.policy];
      const right_ = at[0] < (left + right) / 2, label = { x: at[0] + (right_ ? 10 : -10), y: at[1] + 4, wide: 8 * text.length };
      while (labels.some((other) => Math.abs(other.y - label.y) < 14 && Math.abs(other.x - label.x) < (other.wide + label.wide) / 2 + 10)) label.y -= 7;
      labels.push(label);
      svg.append(element("circle", { cx: at[0], cy: at[1], r: player.size ? 5 : 7, class: "point", "data-policy": player.policy }),
        element("text", { x: label.x, y: label.y, "text-anchor": right_ ? "start" : "end", class: "name" }, text));
    }
    priceRoot.querySelector("tbody").replaceChildren(
      ...known.map((player) => row(player.policy, player.title, player.at.map(whole))));
  }

  // ---------- two problems

  const problemsRoot = byId("problems"), LONG = 20000, BINS = 50;
  let problemsState = null;

  const problems = task(problemsRoot, () => {
    const { beta, seed } = settings(), K = Number(byId("K").value), gap = Number(byId("gap").value);
    show("K", `${K}`);
    show("gap", `${gap}`);
    const both = [
      new Simulation.Instance({ sizes: [K + 1, 0, K], means: [gap / 2, 0, 0], sigma: 0.5 }),
      new Simulation.Instance({ sizes: [K + 1, 1, K - 1], means: [gap / 2, gap, 0], sigma: 0.5 }),
    ];
    const players = [{ policy: "moss-oracle", alpha: 0 }, { policy: "moss" }, { policy: "quantile" }, { policy: "parallel" }, { policy: "moss++", beta }, { policy: "empmoss++", beta }]
      .map((player) => ({ ...player, sums: [0, 0], counts: [0, 0] }));
    return (problemsState = { both, players, K, gap, seed, shown: [] });
  }, (state) => {
    const { both, players, seed } = state, chosen = players.find((player) => player.policy === policy);
    const jobs = both.map((instance, k) => () => { state.shown[k] = Simulation.play({ ...chosen, instance, horizon: LONG, seed }); });
    for (let replication = 0; replication < RUNS; replication++) {
      for (const player of players) {
        both.forEach((instance, k) => jobs.push(() => {
          player.sums[k] += Simulation.play({ ...player, instance, horizon: LONG, seed, replication }).regret[LONG];
          player.counts[k]++;
        }));
      }
    }
    return jobs;
  }, drawProblems);

  function drawProblems({ players, K, gap, shown }) {
    const titles = ["Nothing is hidden", `One of ${K} hidden arms pays ${gap}`];
    problemsRoot.querySelectorAll(".chart").forEach((place, k) => {
      if (shown[k]) drawProblem(place, shown[k], titles[k], K);
    });
    if (shown[1]) {
      const same = shown[0].arms.findIndex((arm, t) => arm !== shown[1].arms[t]);
      const told = policy === "parallel" ? "Parallel knows the best mean, which is not the same in both. It" : TITLES[policy];
      problemsRoot.querySelector(".said").textContent = `${told} pulls the same arms in both problems ` +
        (same < 0 ? "to the end." : `until pull ${whole(same)}.`);
    }
    problemsRoot.querySelector("tbody").replaceChildren(...players.filter((player) => player.counts[1]).map((player) => {
      const [left, right] = player.sums.map((sum, k) => sum / player.counts[k]);
      const bound = LONG * gap / 2 * (1 - 1 / K - Math.sqrt(2 * gap * left / K));
      const title = player.policy === "moss-oracle" ? "MOSS Oracle for hardness 0" : TITLES[player.policy];
      const asked = player.policy === "parallel" || bound <= 0 ? "nothing" : `≥ ${whole(bound)}`;
      return row(player.policy, title, [whole(left), whole(right), asked]);
    }));
  }

  function drawProblem(place, run, title, K) {
    const height = 190, counts = Array.from({ length: BINS }, () => [0, 0, 0]), each = LONG / BINS;
    run.arms.forEach((arm, t) => { // arms 0, …, K are open; the hidden ones follow
      counts[Math.floor(t / each)][run.groups[t]]++;
    });
    const total = [0, 1, 2].map((k) => counts.reduce((sum, bin) => sum + bin[k], 0) / LONG);
    const told = `${title}: ${percent(total[0])} of the pulls on open arms, ${percent(total[2])} on hidden arms that pay nothing, ${percent(total[1])} on the one that pays. Regret ${whole(run.regret[LONG])}.`;
    const { svg, width } = canvas(place, height, told);
    const [left, right, top, bottom] = [40, width - 6, 26, height - 24], wide = (right - left) / BINS;
    svg.append(element("text", { x: left, y: 14, class: "title" }, title));
    counts.forEach((bin, k) => {
      let at = bottom;
      for (const [group, kind] of [[1, "best"], [0, "open"], [2, "hidden"]]) {
        const tall = (bottom - top) * bin[group] / each;
        at -= tall;
        if (tall) svg.append(element("rect", { x: left + k * wide, y: at, width: wide + 0.3, height: tall, class: `part ${kind}` }));
      }
    });
    for (const share of [0, 0.5, 1]) {
      svg.append(element("text", { x: left - 5, y: bottom - (bottom - top) * share + 4, "text-anchor": "end" }, percent(share)));
    }
    svg.append(element("text", { x: left, y: height - 6 }, "0"),
      element("text", { x: right, y: height - 6, "text-anchor": "end" }, `${whole(LONG)} pulls, regret ${whole(run.regret[LONG])}`));
  }

  // ---------- begin

  function soon(work) { // once, after the last of many events
    let waiting = 0;
    return () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(work);
    };
  }

  makePolicies();
  const everything = soon(() => { simulateAll(); price.begin(); problems.begin(); });
  for (const id of ["n", "alpha", "T", "beta", "seed"]) byId(id).addEventListener("input", everything);
  for (const id of ["easy", "hard"]) byId(id).addEventListener("input", soon(price.begin));
  for (const id of ["K", "gap"]) byId(id).addEventListener("input", soon(problems.begin));
  byId("t").addEventListener("input", () => { stop(); showTime(Number(byId("t").value)); });
  byId("run").addEventListener("click", run);
  byId("back").addEventListener("click", () => step(-1));
  byId("on").addEventListener("click", () => step(1));
  addEventListener("resize", soon(() => {
    drawRegret(shownTime);
    if (priceState) drawPrice(priceState);
    if (problemsState) drawProblems(problemsState);
  }));
  simulateAll();
})();
