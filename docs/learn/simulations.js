// The package's policies in the browser: the same random words, and so the same arms, pull by pull.
// tests/reference/randomness.md says which word decides what; docs/learn/*.py has the policies in plain Python.
"use strict";

const Simulation = (() => {
  // A word has 64 bits. It is kept as two numbers of 32 bits each, and functions return it in these.
  let high = 0, low = 0;
  const GAMMA = [0x9E3779B9, 0x7F4A7C15];
  const [FRESH, TIES, ORDER, MIXTURES, RANKING, EPOCHS] = [1, 2, 3, 4, 5, 6];

  function multiply(ah, al, bh, bl) {
    const a0 = al & 0xFFFF, a1 = al >>> 16, b0 = bl & 0xFFFF, b1 = bl >>> 16;
    const first = a1 * b0 + ((a0 * b0) >>> 16);
    const second = a0 * b1 + (first & 0xFFFF);
    high = (a1 * b1 + (first >>> 16) + (second >>> 16) + Math.imul(al, bh) + Math.imul(ah, bl)) >>> 0;
    low = Math.imul(al, bl) >>> 0;
  }

  function mix(h, l) { // SplitMix64's output for a state
    multiply((h ^ (h >>> 30)) >>> 0, (l ^ ((l >>> 30) | (h << 2))) >>> 0, 0xBF58476D, 0x1CE4E5B9);
    h = high; l = low;
    multiply((h ^ (h >>> 27)) >>> 0, (l ^ ((l >>> 27) | (h << 5))) >>> 0, 0x94D049BB, 0x133111EB);
    h = high; l = low;
    high = (h ^ (h >>> 31)) >>> 0;
    low = (l ^ ((l >>> 31) | (h << 1))) >>> 0;
  }

  function draw(key, counter) {
    multiply(0, counter + 1, GAMMA[0], GAMMA[1]);
    const l = key[1] + low;
    mix((key[0] + high + (l > 0xFFFFFFFF ? 1 : 0)) >>> 0, l >>> 0);
  }

  function drawKey(key, counter) {
    draw(key, counter);
    return [high, low];
  }

  // floor(word n / 2^64), for n below 2^21: all products are exact.
  const below = (n) => Math.floor((high * n + Math.floor(low * n / 4294967296)) / 4294967296);
  const unit = () => (high * 2097152 + (low >>> 11)) / 9007199254740992;

  class Stream {
    constructor(key, purpose) { [this.high, this.low] = drawKey(key, purpose); }
    next() {
      const l = this.low + GAMMA[1];
      this.high = (this.high + GAMMA[0] + (l > 0xFFFFFFFF ? 1 : 0)) >>> 0;
      this.low = l >>> 0;
      mix(this.high, this.low);
    }
    below(n) {
      this.next();
      return below(n);
    }
  }

  const seedKey = (seed) => [Math.floor(seed / 4294967296) >>> 0, seed >>> 0];
  const replicationKey = (seed, replication) => drawKey(drawKey(seedKey(seed), 0), replication);

  // Wichura's AS 241, as the package has it: the normal quantile at a number made of a word.
  const CENTRAL = [[2509.0809287301227, 5226.495278852854], [33430.57558358813, 28729.085735721943],
    [67265.7709270087, 39307.89580009271], [45921.95393154987, 21213.794301586597],
    [13731.69376550946, 5394.196021424751], [1971.5909503065513, 687.1870074920579],
    [133.14166789178438, 42.31333070160091], [3.3871328727963665, 1]];
  const NEAR = [[0.0007745450142783414, 1.0507500716444169e-09], [0.022723844989269184, 0.0005475938084995345],
    [0.2417807251774506, 0.015198666563616457], [1.2704582524523684, 0.14810397642748008],
    [3.6478483247632045, 0.6897673349851], [5.769497221460691, 1.6763848301838038],
    [4.630337846156546, 2.053191626637759], [1.4234371107496835, 1]];
  const FAR = [[2.0103343992922881e-07, 2.0442631033899397e-15], [2.7115555687434876e-05, 1.421511758316446e-07],
    [0.0012426609473880784, 1.8463183175100548e-05], [0.026532189526576124, 0.0007868691311456133],
    [0.29656057182850487, 0.014875361290850615], [1.7848265399172913, 0.1369298809227358],
    [5.463784911164114, 0.599832206555888], [6.657904643501103, 1]];

  function quotient(coefficients, r) {
    let over = 0, under = 0;
    for (const [above, beneath] of coefficients) {
      over = over * r + above;
      under = under * r + beneath;
    }
    return over / under;
  }

  function normal() {
    const p = (high * 1048576 + (low >>> 12) + 0.5) / 4503599627370496, q = p - 0.5;
    if (Math.abs(q) <= 0.425) return q * quotient(CENTRAL, 0.180625 - q * q);
    const r = Math.sqrt(-Math.log(q < 0 ? p : 1 - p));
    const tail = r <= 5 ? quotient(NEAR, r - 1.6) : quotient(FAR, r - 5);
    return q < 0 ? -tail : tail;
  }

  // Groups of arms with equal means, as ma.instances.grouped; sigma 0 stands for rewards 0 and 1.
  class Instance {
    constructor({ sizes, means, sigma = 0 }) {
      Object.assign(this, { sizes, means, sigma, n: sizes.reduce((a, b) => a + b), best: Math.max(...means) });
    }
    group(arm) {
      let k = 0;
      for (let end = this.sizes[0]; arm >= end; end += this.sizes[k]) k++;
      return k;
    }
  }

  // Every arm has its own rewards, whichever policy pulls it.
  class Tape {
    constructor(instance, key) {
      this.instance = instance;
      this.rewards = drawKey(drawKey(key, 1), 1);
      this.arms = new Map();
    }
    pull(arm) {
      let own = this.arms.get(arm);
      if (!own) {
        const group = this.instance.group(arm);
        own = { key: drawKey(this.rewards, arm), pulls: 0, group, mean: this.instance.means[group] };
        this.arms.set(arm, own);
      }
      draw(own.key, own.pulls++);
      this.group = own.group;
      this.mean = own.mean;
      if (this.instance.sigma) return own.mean + this.instance.sigma * normal();
      return unit() < own.mean ? 1 : 0;
    }
  }

  // 0, 1, …, n - 1 in random order, one after the other; only what was moved is remembered.
  class Shuffle {
    constructor(n, words) { Object.assign(this, { n, words, drawn: 0, moved: new Map() }); }
    get left() { return this.n - this.drawn; }
    next() {
      const k = this.drawn++, j = k + this.words.below(this.n - k);
      const found = this.moved.get(j) ?? j;
      this.moved.set(j, this.moved.get(k) ?? k);
      return found;
    }
  }

  // Values of slots and their leaders: the list of tests/reference/randomness.md, over a tournament.
  class Leaders {
    constructor(capacity, words) {
      this.leaves = 1;
      while (this.leaves < capacity) this.leaves *= 2;
      this.tree = new Float64Array(2 * this.leaves).fill(-Infinity);
      this.place = new Int32Array(this.leaves).fill(-1);
      this.words = words;
      this.list = [];
      this.forget();
    }
    forget() {
      for (const slot of this.list) this.place[slot] = -1;
      this.list = [];
      this.top = -1;
      this.level = Infinity;
    }
    set(slot, value) {
      const tree = this.tree;
      let k = this.leaves + slot;
      tree[k] = value;
      for (k >>= 1; k >= 1; k >>= 1) tree[k] = Math.max(tree[2 * k], tree[2 * k + 1]);
    }
    add(slot) {
      this.place[slot] = this.list.length;
      this.list.push(slot);
    }
    changed(slot, value) {
      this.set(slot, value);
      if (slot === this.top) {
        if (value > this.level) return;
        this.top = -1;
      } else if (this.place[slot] >= 0) {
        if (value === this.level) return;
        const last = this.list.pop(), at = this.place[slot];
        this.place[slot] = -1;
        if (last !== slot) {
          this.list[at] = last;
          this.place[last] = at;
        }
      }
      if (value > this.level && this.top < 0) this.top = slot;
      else if (value > this.level) this.forget();
      else if (value === this.level && this.list.length) this.add(slot);
      else if (!this.list.length && this.top < 0) this.level = Infinity;
    }
    find() {
      if (this.list.length || this.top >= 0) return;
      const { tree, leaves } = this, best = tree[1], tied = [];
      const collect = (k) => {
        if (tree[k] !== best) return;
        if (k >= leaves) tied.push(k - leaves);
        else { collect(2 * k); collect(2 * k + 1); }
      };
      collect(1);
      if (tied.length === 1) {
        this.top = tied[0];
        this.level = -Infinity;
        for (let k = leaves + this.top; k > 1; k >>= 1) this.level = Math.max(this.level, tree[k ^ 1]);
      } else {
        this.level = best;
        for (const slot of tied) this.add(slot);
      }
    }
    choose() {
      this.find();
      if (this.top >= 0) return this.top;
      return this.list.length === 1 ? this.list[0] : this.list[this.words.below(this.list.length)];
    }
  }

  // Slots in the order of opening. A member is an arm, or -j for mixture-arm j.
  class Slots {
    constructor(capacity, ties) {
      this.member = [];
      this.pulls = [];
      this.total = [];
      this.leaders = new Leaders(capacity, ties);
    }
    scale(H, K) {
      this.ratio = H / K;
      this.log = Math.log(H / K);
    }
    index(slot) {
      const N = this.pulls[slot], mean = this.total[slot] / N;
      return N >= this.ratio ? mean : mean + Math.sqrt((this.log - Math.log(N)) / N);
    }
    open(member) {
      this.pulls.push(0);
      this.total.push(0);
      return this.member.push(member) - 1;
    }
    learn(slot, reward) {
      this.pulls[slot]++;
      this.total[slot] += reward;
      this.leaders.changed(slot, this.index(slot));
    }
  }

  // What a run leaves behind: of each pull its arm, group, member and phase (iteration, round or subroutine).
  // It can be looked at step by step; a step is a phase, or an epoch of Parallel.
  class Run {
    constructor(instance, horizon, seed, replication) {
      const key = replicationKey(seed, replication);
      Object.assign(this, { instance, n: instance.n, horizon, t: 0, phases: [], steps: [], running: 0, shares: [null] });
      this.key = drawKey(key, 0);
      this.tape = new Tape(instance, key);
      this.arms = new Int32Array(horizon);
      this.groups = new Uint8Array(horizon);
      this.members = new Int32Array(horizon);
      this.phase = new Uint8Array(horizon);
      this.regret = new Float64Array(horizon + 1);
      for (const [name, purpose] of Object.entries({ fresh: FRESH, ties: TIES, order: ORDER, mixing: MIXTURES, ranking: RANKING, epochs: EPOCHS })) {
        this[name] = new Stream(this.key, purpose);
      }
    }
    get over() { return this.t === this.horizon; }
    begin(phase) {
      this.resume(this.phases.push(phase) - 1);
    }
    resume(k) {
      this.running = k;
      this.steps.push(this.t);
    }
    realArm(member) {
      while (member < 0) { // the first member whose cumulative pulls exceed the target
        const { members, until } = this.shares[-member];
        const target = this.mixing.below(until[until.length - 1]);
        let a = 0, b = until.length - 1;
        while (a < b) {
          const middle = (a + b) >> 1;
          if (until[middle] > target) b = middle; else a = middle + 1;
        }
        member = members[a];
      }
      return member;
    }
    pull(slots, slot) {
      const member = slots.member[slot], t = this.t++;
      const arm = this.realArm(member), reward = this.tape.pull(arm);
      this.arms[t] = arm;
      this.groups[t] = this.tape.group;
      this.members[t] = member;
      this.phase[t] = this.running;
      this.regret[t + 1] = this.regret[t] + this.instance.best - this.tape.mean;
      slots.learn(slot, reward);
      return reward;
    }
    addMixture(members, pulls) {
      let sum = 0;
      this.shares.push({ members, until: pulls.map((own) => (sum += own)) });
    }
  }

  function moss(run, { size = run.n }) {
    const K = Math.min(size, run.n), slots = new Slots(Math.min(K, run.horizon), run.ties);
    const shuffle = new Shuffle(run.n, run.fresh);
    slots.scale(run.horizon, K);
    run.begin({ real: K, mixtures: 0 });
    while (!run.over) {
      const fresh = slots.member.length < K;
      run.pull(slots, fresh ? slots.open(shuffle.next()) : slots.leaders.choose());
    }
  }

  const iterations = (T, beta) => Math.ceil(beta * Math.log2(T) - 1e-12);

  function mossPlusPlus(run, { beta }) {
    const T = run.horizon, p = iterations(T, beta);
    for (let i = 1; !run.over; i++) {
      const real = Math.min(2 ** (p + 2 - i), run.n), length = Math.min(2 ** (p + i), T), K = real + i - 1;
      const slots = new Slots(K, run.ties), shuffle = new Shuffle(run.n, run.fresh);
      const waiting = Array.from({ length: i - 1 }, (_, j) => -1 - j);
      slots.scale(length, K);
      run.begin({ real, mixtures: i - 1 });
      for (let made = 0; made < length && !run.over; made++) {
        if (slots.member.length < K) {
          const at = waiting.length ? run.order.below(K - slots.member.length) : 0;
          run.pull(slots, slots.open(at < waiting.length ? take(waiting, at) : shuffle.next()));
        } else run.pull(slots, slots.leaders.choose());
      }
      run.addMixture(slots.member, slots.pulls);
    }
  }

  function take(list, at) { // the last one moves into the gap
    const taken = list[at], last = list.pop();
    if (at < list.length) list[at] = last;
    return taken;
  }

  // empMOSS++'s set: the largest means, an arm without a pull counting as 0.
  function chooseArms(slots, places, untouched, ranking) {
    const count = slots.member.length, mean = (slot) => slots.total[slot] / slots.pulls[slot];
    const leaders = new Leaders(count, ranking), chosen = [], zeros = [];
    let positive = 0, fresh = 0;
    for (let slot = 0; slot < count; slot++) {
      if (slots.member[slot] < 0) continue;
      if (mean(slot) === 0) zeros.push(slot);
      else { leaders.set(slot, mean(slot)); positive++; }
    }
    for (let k = Math.min(places, positive); k > 0; k--) {
      const slot = leaders.choose();
      chosen.push(slot);
      leaders.changed(slot, -Infinity);
    }
    while (chosen.length + fresh < places && zeros.length + untouched > 0) {
      const at = ranking.below(zeros.length + untouched);
      if (at < zeros.length) chosen.push(take(zeros, at));
      else { fresh++; untouched--; }
    }
    return [chosen, fresh];
  }

  function empMossPlusPlus(run, { beta }) {
    const T = run.horizon, p = iterations(T, beta);
    const slots = new Slots(Math.min(run.n, 2 ** (p + 3)) + p + 1, run.ties);
    const shuffle = new Shuffle(run.n, run.fresh);
    for (let i = 1, planned = 0; !run.over; i++) {
      const places = Math.min(2 ** (p + 2 - i), run.n), length = Math.min(2 ** (p + i), T);
      planned += length;
      let [members, fresh] = i === 1 ? [[], places] : chooseArms(slots, places, shuffle.left, run.ranking);
      for (let slot = 0; slot < slots.member.length; slot++) {
        if (slots.member[slot] < 0) members.push(slot);
        slots.leaders.set(slot, -Infinity);
      }
      let waiting = i > 1;
      slots.scale(Math.min(planned, T), members.length + fresh + (waiting ? 1 : 0));
      slots.leaders.forget();
      for (const slot of members) slots.leaders.set(slot, slots.index(slot));
      const before = slots.pulls.slice();
      run.begin({ real: places, mixtures: i - 1 });
      for (let made = 0; made < length && !run.over; made++) {
        let slot = -1;
        if (waiting && run.order.below(fresh + 1) === 0) {
          waiting = false;
          slot = slots.open(1 - i);
        } else if (fresh > 0) {
          fresh--;
          slot = slots.open(shuffle.next());
        }
        if (slot >= 0) members.push(slot);
        run.pull(slots, slot >= 0 ? slot : slots.leaders.choose());
      }
      run.addMixture(members.map((s) => slots.member[s]), members.map((s) => slots.pulls[s] - (before[s] ?? 0)));
    }
  }

  function quantile(run) {
    const size = (l) => Math.min(Math.ceil(2 ** (0.347 * l)), run.n);
    const slots = new Slots(size(Math.ceil(Math.log2(run.horizon + 2))), run.ties);
    const shuffle = new Shuffle(run.n, run.fresh);
    for (let l = 1; !run.over; l++) {
      const K = size(l);
      slots.scale(Math.min(2 ** (l + 1) - 2, run.horizon), K);
      slots.leaders.forget();
      for (let slot = 0; slot < slots.member.length; slot++) slots.leaders.set(slot, slots.index(slot));
      run.begin({ real: K, mixtures: 0 });
      for (let made = 0; made < 2 ** l && !run.over; made++) {
        const fresh = slots.member.length < K;
        run.pull(slots, fresh ? slots.open(shuffle.next()) : slots.leaders.choose());
      }
    }
  }

  // How many arms MOSS Oracle draws for a hardness, and how many best arms a hardness means.
  const setSize = (n, T, alpha) => Math.max(1, Math.min(Math.ceil(2 * T ** alpha * 0.5 * Math.log(T)), T, n));
  const bestArms = (n, T, alpha) => Math.max(1, Math.ceil(n / (2 * T ** alpha) * (1 - 1e-12)));

  // The best mean is that of the instance, as in `simulate`.
  function parallel(run, { bestMean = run.instance.best }) {
    const T = run.horizon, q = Math.max(1, Math.ceil(Math.log(T))), epoch = Math.ceil(Math.sqrt(T));
    const runs = Array.from({ length: q }, (_, i) => {
      const K = setSize(run.n, T, (i + 1) / q), slots = new Slots(K, run.ties);
      slots.scale(T, K);
      run.phases.push({ real: K, mixtures: 0 });
      return { K, slots, shuffle: new Shuffle(run.n, run.fresh), pulls: 0, rewards: 0 };
    });
    while (!run.over) {
      const lowest = lowestRegret(runs, bestMean, run.epochs), own = runs[lowest];
      run.resume(lowest);
      for (let made = 0; made < epoch && !run.over; made++) {
        const fresh = own.slots.member.length < own.K;
        own.rewards += run.pull(own.slots, fresh ? own.slots.open(own.shuffle.next()) : own.slots.leaders.choose());
        own.pulls++;
      }
    }
  }

  function lowestRegret(runs, bestMean, words) { // of equal ones, that of the largest word
    words.next(); // stands for "none yet"
    let lowest = 0, least = Infinity, word = [0, 0];
    runs.forEach(({ pulls, rewards }, i) => {
      const regret = pulls * bestMean - rewards;
      words.next();
      const larger = high > word[0] || (high === word[0] && low > word[1]);
      if (regret < least || (regret === least && larger)) [lowest, least, word] = [i, regret, [high, low]];
    });
    return lowest;
  }

  function planted(n, m) { // as ma.instances.planted: best arms of mean 0.9, the others 0.1, …, 0.5
    const share = Math.floor((n - m) / 5), rest = (n - m) % 5;
    const sizes = [m, ...[0, 1, 2, 3, 4].map((k) => share + (k < rest ? 1 : 0))];
    return new Instance({ sizes, means: [0.9, 0.1, 0.2, 0.3, 0.4, 0.5] });
  }

  const POLICIES = {
    "moss": moss,
    "moss-oracle": (run, { alpha }) => moss(run, { size: setSize(run.n, run.horizon, alpha) }),
    "quantile": quantile,
    "parallel": parallel,
    "moss++": mossPlusPlus,
    "empmoss++": empMossPlusPlus,
  };

  function play({ policy, instance, horizon, seed = 0, replication = 0, ...parameters }) {
    const run = new Run(instance, horizon, seed, replication);
    POLICIES[policy](run, parameters);
    return run;
  }

  return { Instance, bestArms, planted, play, setSize, policies: Object.keys(POLICIES) };
})();
