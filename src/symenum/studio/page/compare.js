// Two laws beside each other: their formulas, their numbers, and their plots in one frame.

import { getPlots } from "./api.js";
import { element, freshId, put, refill, shortened } from "./dom.js";
import { number } from "./format.js";
import { fitPlots, slicePlots } from "./law_plots.js";
import { maths } from "./maths.js";

/** Fill `host` with a choice of another law of the front, and with both laws once one is chosen. */
export function comparePanel(host, place, law, front, target) {
  const others = front.filter((other) => other.index !== law.index);
  if (!others.length) {
    put(host, element("p", { class: "hint" }, "There is no other law on the front yet."));
    return () => {};
  }
  const id = freshId("other");
  const choice = element(
    "select",
    { id },
    element("option", { value: "" }, "choose a law …"),
    others.map((other) => element("option", { value: other.index }, `${other.complexity}: ${shortened(other.text, 70)}`)),
  );
  const result = element("div");
  put(host, element("p", { class: "field inline" }, element("label", { for: id }, "Compare with"), choice), result);
  let request = null;
  let clear = () => {};

  choice.addEventListener("change", async () => {
    request?.abort();
    clear();
    clear = () => {};
    refill(result);
    const other = others.find((one) => String(one.index) === choice.value);
    if (!other) return;
    request = new AbortController();
    try {
      const [mine, theirs] = await Promise.all(
        [law, other].map((one) => getPlots({ ...place, index: one.index }, null, request.signal)),
      );
      const series = [
        { name: `size ${law.complexity}`, colour: "--accent", plots: mine },
        { name: `size ${other.complexity}`, colour: "--second", plots: theirs },
      ];
      put(result, numbers(law, other));
      const ends = [fitPlots(result, series, target), slicePlots(result, series, target)];
      clear = () => ends.forEach((end) => end());
    } catch (problem) {
      if (problem.name !== "AbortError") put(result, element("p", { class: "problem", role: "alert" }, problem.message));
    }
  });
  return () => {
    request?.abort();
    clear();
  };
}

function numbers(law, other) {
  const row = (one, kind) =>
    element(
      "tr",
      {},
      element("td", { class: "law-cell" }, element("div", { class: `scroll key-${kind}` }, maths(one.latex, one.text))),
      element("td", { class: "narrow" }, number(one.complexity)),
      element("td", { class: "narrow" }, number(one.loss)),
      element("td", { class: "narrow" }, number(one.r2, 5)),
    );
  return element(
    "table",
    { class: "parts" },
    element("caption", { class: "unseen" }, "Two laws compared"),
    element("thead", {}, element("tr", {}, ["law", "size", "loss", "R²"].map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, row(law, "accent"), row(other, "second")),
  );
}
