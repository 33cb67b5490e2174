// Pages poll the service for their panels; buttons and forms send requests to the API.
"use strict";

const PERIOD = 3000; // milliseconds between two polls

const page = document.body.dataset;
const said = document.getElementById("said");
const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Times in the user's time zone

const FORMS = {
  time: { hour: "2-digit", minute: "2-digit" },
  axis: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
  full: { dateStyle: "medium", timeStyle: "short" },
};

function writeTimes(within) {
  for (const time of all("time[data-form]", within)) {
    time.textContent = new Date(time.dateTime).toLocaleString(undefined, FORMS[time.dataset.form]);
  }
}

// Panels

function busy(panel) {
  const selection = document.getSelection();
  return !selection.isCollapsed && panel.contains(selection.anchorNode);
}

/** Replace a panel, unless text in it is selected; keep the focus, open details and scroll positions. */
function replace(panel, html) {
  if (busy(panel)) return false;
  const focus = panel.contains(document.activeElement) ? document.activeElement.id : "";
  const open = all("details[open]", panel).map((details) => details.id);
  const left = all(".scroll", panel).map((box) => box.scrollLeft);
  panel.innerHTML = html; // made by the service, with all names escaped
  open.forEach((id) => { if (id) document.getElementById(id)?.setAttribute("open", ""); });
  all(".scroll", panel).forEach((box, k) => { box.scrollLeft = left[k] || 0; });
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  writeTimes(panel);
  return true;
}

function alive(state, words) {
  const mark = find("[data-live]");
  if (!mark) return;
  mark.dataset.live = state;
  const text = find("[data-live-words]");
  if (text.textContent !== words) text.textContent = words;
}

const shown = {}; // the last HTML of each panel

async function refresh() {
  if (document.hidden) return;
  let panels;
  try {
    panels = await send("GET", page.panels);
  } catch (error) {
    alive("off", `stale: ${error.message}`);
    return;
  }
  const { state, ...html } = panels;
  if (state) page.state = state;
  for (const name of Object.keys(html)) {
    const panel = find(`[data-panel="${name}"]`);
    if (panel && html[name] !== shown[name] && replace(panel, html[name])) shown[name] = html[name];
  }
  alive("on", "live");
}

async function follow() {
  await refresh();
  setTimeout(follow, PERIOD);
}

// Requests

async function send(method, path, body, type) {
  const headers = body === undefined ? {} : { "Content-Type": type || "application/json" };
  const content = body === undefined || type ? body : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: content });
  } catch {
    throw new Error("The service cannot be reached.");
  }
  const result = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(result.message || `The request failed: HTTP ${answer.status}.`);
  return result;
}

const experiment = (path = "") =>
  `${page.root}/v1/experiments/${encodeURIComponent(page.experiment)}${path && `/${path}`}`;

function say(text) {
  said.textContent = text;
  said.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("shown"), 6000);
}

async function press(button) {
  const { call, arm, sure, done, then, refresh: again } = button.dataset;
  if (sure && !window.confirm(sure)) return;
  const [method, path = ""] = call.split(" ");
  button.disabled = true;
  try {
    const result = await send(method, experiment(path), arm === undefined ? undefined : { arm });
    if (result.state && method === "POST") page.state = result.state;
    if (then !== undefined) window.location.assign(then || window.location.href);
    if (again !== undefined) await showArms(window.location.search);
    if (done) say(done);
  } catch (error) {
    say(error.message);
  }
  button.disabled = false;
}

// Forms

/** Return the arms in a file or a text as NDJSON; plain text has one name per line. */
async function armsOf(file, text) {
  const name = file ? file.name.toLowerCase() : "";
  if (/\.(ndjson|jsonl)$/.test(name)) return [file, "application/x-ndjson"];
  const lines = (file ? await file.text() : text).split(/\r?\n/).filter((line) => line.trim());
  return [lines.map((line) => JSON.stringify(line)).join("\n"), "application/x-ndjson"];
}

const given = (value) => (value === "" || value === null ? undefined : Number(value));
/** Return a number, or null for an empty text, or else the text, such as 20%; the service checks it. */
const slack = (value) => {
  const text = value.trim();
  if (text === "") return null;
  return Number.isNaN(Number(text)) ? text : Number(text);
};
const hasFile = (form) => form.get("file") instanceof File && form.get("file").size > 0;

async function listOf(form) {
  const list = await armsOf(hasFile(form) ? form.get("file") : null, form.get("names"));
  if (!list[0].length && !list[0].size) throw new Error("Choose a file or enter names.");
  return list;
}
const many = (count) => `${count.toLocaleString()} ${count === 1 ? "arm is" : "arms are"}`;

const SEND = {
  async arms(form) {
    if (form.has("count")) return send("POST", experiment("arms"), { count: given(form.get("count")) });
    return send("POST", experiment("arms"), ...await listOf(form));
  },
  async sync(form) {
    const list = await listOf(form);
    const { added, restored, retired } = await send("PUT", experiment("arms?preview=true"), ...list);
    const said = `${many(added)} added, ${many(restored)} restored and ${many(retired)} retired`;
    if (!added && !restored && !retired) return say("Nothing changes: these are the arms already.");
    if (!window.confirm(`${said}. Change the arms?`)) throw new Error("Nothing was changed.");
    await send("PUT", experiment("arms"), ...list);
    await showArms(window.location.search);
    return say(`${said}.`);
  },
  async new(form) {
    const name = form.get("name"), path = `${page.root}/v1/experiments/${encodeURIComponent(name)}`;
    const [low, high] = [given(form.get("low")), given(form.get("high"))];
    const file = hasFile(form);
    await send("PUT", path, {
      policy: form.get("other").trim() || form.get("policy"), horizon: given(form.get("horizon")),
      n_arms: file ? undefined : given(form.get("n_arms")), seed: given(form.get("seed")),
      reward_range: low === undefined || high === undefined ? null : [low, high],
      window: given(form.get("window")), hold: form.get("hold") === "hold",
      missing: given(form.get("missing")),
      reward: form.get("reward").trim() || undefined,
      ...(form.get("control") ? { control: form.get("control"), share: given(form.get("share")) } : {}),
      epsilon: slack(form.get("epsilon")), target: slack(form.get("target")),
    });
    if (file) await send("POST", `${path}/arms`, ...await armsOf(form.get("file"), ""));
    window.location.assign(`${page.root}/experiments/${encodeURIComponent(name)}`);
  },
  async settings(form) {
    await send("PATCH", experiment(), {
      epsilon: slack(form.get("epsilon")), target: slack(form.get("target")),
    });
    say("Changed.");
  },
  async season(form) {
    const policy = form.get("policy").trim() || undefined, horizon = given(form.get("horizon"));
    await send("POST", experiment("season"), { policy, horizon });
    say("A season has begun.");
  },
};

async function submit(form) {
  const words = find(".said", form), button = find("button:not([type=button])", form);
  words.textContent = "";
  button.disabled = true;
  try {
    const result = await SEND[form.dataset.form](new FormData(form));
    if (result && result.added) say(result.added === 1 ? "1 arm was added." : `${result.added.toLocaleString()} arms were added.`);
    form.closest("dialog")?.close();
  } catch (error) {
    words.textContent = error.message;
  }
  button.disabled = false;
}

// The panel of arms, whose search and page differ between users

async function showArms(query) {
  const panel = find('[data-fragment="arms"]');
  const answer = await fetch(`${page.root}/experiments/${page.experiment}/arms${query}`);
  if (!answer.ok) return say("The arms cannot be shown now.");
  panel.innerHTML = await answer.text();
  window.history.replaceState(null, "", `${query || window.location.pathname}#arms`);
  return writeTimes(panel);
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-call], [data-opens], [data-closes], [data-fragment-link]");
  if (!target) return;
  if (target.dataset.call) press(target);
  if (target.dataset.opens) document.getElementById(target.dataset.opens).showModal();
  if ("closes" in target.dataset) target.closest("dialog").close();
  if ("fragmentLink" in target.dataset) {
    event.preventDefault();
    showArms(new URL(target.href).search).then(() => find("#arms-title").scrollIntoView());
  }
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.form) {
    event.preventDefault();
    submit(form);
  } else if ("fragmentForm" in form.dataset) {
    event.preventDefault();
    showArms(`?${new URLSearchParams(new FormData(form))}`);
  }
});

writeTimes(document);
if (page.panels) follow();
