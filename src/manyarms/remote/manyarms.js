// manyarms.js: ask which arm to show, tell the reward by its ticket. No build, no dependency.
//
//   <script src="https://bandit.example/manyarms.js"></script>
//   const captions = new Manyarms("captions", "the browser token");
//   const { arm, ticket } = await captions.ask({ timeout: 500, fallback: "current" });
//   captions.tell(ticket, 1); // also while the page is being left
"use strict";

(() => {
  const home = document.currentScript ? new URL(".", document.currentScript.src).href : "/";
  const AGAIN = [429, 502, 503, 504];
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)),
    (word) => word.toString(16).padStart(8, "0")).join("");

  class Manyarms {
    /** An experiment of the service that this file came from, or of the one at `url`. */
    constructor(experiment, token, url = home) {
      this.base = `${url.replace(/\/$/, "")}/v1/experiments/${encodeURIComponent(experiment)}`;
      this.token = token;
    }

    /**
     * The next pull: { pull, arm, ticket }; with `k`, a list of them. `ask(options)` is for one.
     * If no answer comes within `timeout` milliseconds (3000), or the service refuses, it is
     * { arm: fallback, ticket: null, fallback: true }, which is never told. Without a `fallback`,
     * an error is thrown.
     */
    async ask(k, options = {}) {
      if (typeof k === "object") return this.ask(k.k, k);
      const { timeout = 3000, fallback } = options;
      try {
        const { pulls } = await this.send("asks", { k: k || 1 }, newKey(), timeout);
        return k ? pulls : pulls[0];
      } catch (error) {
        if (fallback === undefined) throw error;
        const instead = { arm: fallback, ticket: null, fallback: true };
        return k ? Array.from({ length: k }, () => ({ ...instead })) : instead;
      }
    }

    /** Tell a reward. A beacon outlives the page; where there is none, a request does. */
    tell(ticket, reward) {
      if (ticket === null) return; // of a fallback
      const body = JSON.stringify({ tells: [{ ticket, reward }] });
      const url = `${this.base}/tells?token=${encodeURIComponent(this.token)}`;
      const text = new Blob([body], { type: "text/plain" }); // which asks no leave beforehand
      if (navigator.sendBeacon && navigator.sendBeacon(url, text)) return;
      fetch(url, { method: "POST", body: text, keepalive: true, credentials: "omit" })
        .catch(() => {});
    }

    /** Tell a reward, and wait for the result: { applied, held, code, message }. */
    async tellSurely(ticket, reward) {
      if (ticket === null) return { applied: false };
      const { results } = await this.send("tells", { tells: [{ ticket, reward }] });
      return results[0];
    }

    async send(what, content, key, timeout = 10000, attempts = 4) {
      const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
      if (key) headers["Idempotency-Key"] = key; // the same in all attempts: nothing is done twice
      const end = Date.now() + timeout, stop = new AbortController();
      const timer = setTimeout(() => stop.abort(), timeout);
      try {
        for (let attempt = 1; ; attempt++) {
          const answer = await fetch(`${this.base}/${what}`, {
            method: "POST", headers, body: JSON.stringify(content), credentials: "omit",
            signal: stop.signal,
          }).catch((error) => error);
          const lost = !(answer instanceof Response);
          if (!lost && answer.ok) return await answer.json();
          const pause = 200 * 2 ** attempt * (0.5 + Math.random());
          const last = attempt >= attempts || stop.signal.aborted || Date.now() + pause > end;
          if (last || (!lost && !AGAIN.includes(answer.status))) {
            const said = lost ? answer : await answer.json().catch(() => ({}));
            throw Object.assign(new Error(said.message || `HTTP ${answer.status}`), said);
          }
          await wait(pause);
        }
      } finally {
        clearTimeout(timer);
      }
    }
  }
  globalThis.Manyarms = Manyarms;
})();
