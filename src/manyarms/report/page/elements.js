// Small helpers that make elements. Strings become text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (missing(value) || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((child) => !missing(child)));
  return node;
}

function element(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A box for what may be wider than the page; the keyboard can scroll it. */
function scrolling(name, ...children) {
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, children);
}

/** A table of numbers: the heads of its columns, and the cells of its rows. */
function numbersTable(heads, rows, kind = "numbers") {
  return element("table", { class: kind },
    element("thead", null,
      element("tr", null, heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", null, rows.map((cells) => element("tr", null, cells))));
}

function select(name, groups, chosen, onchange) {
  const options = (items) => items.map((item) =>
    element("option", { value: item.value, selected: item.value === chosen }, item.label));
  const inner = groups.map(({ label, items }) =>
    label ? element("optgroup", { label }, options(items)) : options(items));
  return element("label", { class: "pick" }, name,
    element("select", { onchange: (event) => onchange(Number(event.target.value)) }, inner));
}

let segmentGroups = 0;

/** A row of radio buttons that looks like one switch. */
function segments(title, options, chosen, onchange) {
  const name = `segments-${segmentGroups++}`;
  const labels = Object.entries(options).map(([value, text]) => element("label", null,
    element("input", {
      type: "radio", name, value, checked: value === chosen, onchange: () => onchange(value),
    }),
    text));
  return element("fieldset", null,
    element("legend", null, title), element("div", { class: "segments" }, labels));
}
