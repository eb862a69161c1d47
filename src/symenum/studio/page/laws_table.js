// The laws of a front in a table, in rendered maths, one of them marked. Arrow keys go from law to law.

import { element, refill, setText, shortened } from "./dom.js";
import { number } from "./format.js";
import { maths } from "./maths.js";

/** A table in `host`; gives `show(front, marked, seen)`. Rows that did not change are left alone. */
export function makeLawsTable(host, { onPick = () => {}, output = undefined, title = "Laws of the front" } = {}) {
  const body = element("tbody");
  const rows = new Map();
  refill(
    host,
    element(
      "table",
      { class: "laws" },
      element("caption", { class: "unseen" }, title),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("th", { scope: "col", class: "narrow" }, element("abbr", { title: "complexity" }, "size")),
          element("th", { scope: "col", class: "narrow" }, "loss"),
          element("th", { scope: "col" }, "law"),
        ),
      ),
      body,
    ),
  );
  body.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = [...body.querySelectorAll("button")];
    const at = buttons.indexOf(event.target);
    const next = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1 : at + (step ?? 0);
    if ((!step && !["Home", "End"].includes(event.key)) || at < 0 || !buttons[next]) return;
    event.preventDefault();
    buttons[next].focus();
    buttons[next].click();
  });

  function makeRow(law) {
    const size = element("td", { class: "narrow" });
    const loss = element("td", { class: "narrow" });
    const flag = element("span", { class: "flag" });
    const formula = maths(law.latex, law.text, { output });
    formula.setAttribute("aria-hidden", "true"); // MathML alone names no button: its text does
    const name = element("span", { class: "unseen" }, shortened(law.text, 300));
    const button = element("button", { type: "button", class: "law-button" }, formula, name, flag);
    const row = element("tr", { onclick: () => onPick(row.law.index) }, size, loss, element("td", { class: "law-cell" }, button));
    return Object.assign(row, { size, loss, flag, button });
  }

  return {
    show(front, marked, seen) {
      const wanted = new Set();
      let before = null;
      for (const law of front) {
        const key = `${law.text}\n${law.latex}`;
        wanted.add(key);
        if (!rows.has(key)) rows.set(key, makeRow(law));
        const row = rows.get(key);
        row.law = law;
        setText(row.size, number(law.complexity));
        setText(row.loss, number(law.loss, 3));
        setText(row.flag, law.index === marked ? "marked" : "");
        row.classList.toggle("marked", law.index === marked);
        row.classList.toggle("seen", law.index === seen);
        row.button.setAttribute("aria-pressed", String(law.index === seen));
        row.button.tabIndex = law.index === seen || (seen === null && law === front[0]) ? 0 : -1;
        const next = before ? before.nextSibling : body.firstChild;
        if (next !== row) body.insertBefore(row, next);
        before = row;
      }
      for (const [key, row] of rows) {
        if (wanted.has(key)) continue;
        row.remove();
        rows.delete(key);
      }
    },
  };
}
