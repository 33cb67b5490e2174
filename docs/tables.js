// Tables of the site that can be sorted by their heads and searched.
(() => {
  "use strict";
  const SEARCHED = 10; // rows, at least
  const WORDY = 14; // characters: a cell that needs room, or its words stand one below another

  /** What a row is sorted by: numbers by what a cell begins with, before words; nothing comes last. */
  function keyOf(row, column) {
    const text = row.cells[column].textContent.trim();
    const value = Number.parseFloat(text.replace(/[,\u2009\u202f]/g, "").replace(/^[[×+]/, "").replace("−", "-"));
    return { row, text, value, empty: ["", "-", "–"].includes(text) };
  }

  function sort(head) {
    const body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = [...body.rows].map((row) => keyOf(row, head.cellIndex));
    keyed.sort((a, b) => {
      if (a.empty !== b.empty) return a.empty ? 1 : -1;
      const [x, y] = [Number.isNaN(a.value), Number.isNaN(b.value)];
      if (x !== y) return x ? 1 : -1;
      const order = x ? a.text.localeCompare(b.text) : a.value - b.value;
      return down ? -order : order;
    });
    body.append(...keyed.map(({ row }) => row));
  }

  function search(table) {
    const rows = [...table.tBodies[0].rows];
    const said = Object.assign(document.createElement("span"), { role: "status" });
    const input = Object.assign(document.createElement("input"), { type: "search" });
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const left = rows.filter((row) => !row.hidden).length;
      said.textContent = words.length ? `${left} of ${rows.length} rows` : "";
    });
    const label = Object.assign(document.createElement("label"), { className: "find" });
    label.append("Find in this table", input, said);
    return label;
  }

  for (const table of document.querySelectorAll("article table, main table")) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    const rows = [...(table.tBodies[0]?.rows ?? [])];
    if ("sorted" in table.dataset || rows.length < 2 || !heads.length) continue;
    table.dataset.sorted = "";
    for (const head of heads) {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(head));
      head.append(button);
    }
    for (const { cells } of rows) {
      const [first] = cells;
      for (const cell of cells) cell.classList.toggle("wordy", cell.textContent.length > WORDY);
      first.dataset.policy = first.textContent.trim().split("(")[0];
      const known = getComputedStyle(first).getPropertyValue("--light");
      first.classList.toggle("policy", Boolean(known));
    }
    if (rows.length >= SEARCHED) (table.closest(".wide") ?? table).before(search(table));
  }
})();
