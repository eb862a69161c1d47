// What each part of a law contributes: its share of what the law explains, and the loss without it.

import { element, put } from "./dom.js";
import { number, percent } from "./format.js";
import { maths } from "./maths.js";

export function partsPanel(host, law) {
  if (!law.parts.length) {
    put(host, element("p", { class: "hint" }, "This law has one part only: nothing can be taken out of it."));
    return;
  }
  put(
    host,
    element("p", { class: "hint" }, explanation(law.parts)),
    element(
      "table",
      { class: "parts" },
      element("caption", { class: "unseen" }, "Parts of the law"),
      element("thead", {}, element("tr", {}, ["part", "share", "loss without it"].map((name) => element("th", { scope: "col" }, name)))),
      element(
        "tbody",
        {},
        law.parts.map((one) =>
          element(
            "tr",
            {},
            element("td", { class: "law-cell" }, element("div", { class: "scroll" }, maths(one.latex, one.text))),
            element("td", {}, element("div", { class: "share" }, bar(one.share), element("span", {}, percent(one.share)))),
            element("td", { class: "narrow" }, number(one.loss_without)),
          ),
        ),
      ),
    ),
  );
}

function explanation(parts) {
  const held = parts.every((one) => one.how === "held at its median");
  return held
    ? "The share of the explained variance that is lost when a factor is held at its median and the rest is left as it is."
    : "The share of the explained variance that is lost when a part is taken out and the rest is left as it is.";
}

// `meter` takes its length from an attribute, so that no inline style is needed.
function bar(share) {
  const known = Math.min(Math.max(share ?? 0, 0), 1);
  return element("meter", { min: 0, max: 1, value: known, "aria-label": `share ${percent(share)}` });
}
