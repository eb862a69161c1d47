// One law in full: formula, numbers, and tabs with its plots, constants, parts, comparison and code.

import { getLaw, getPlots } from "./api.js";
import { element, put, refill } from "./dom.js";
import { number, percent } from "./format.js";
import { comparePanel } from "./compare.js";
import { constantsPanel } from "./constants.js";
import { copyPanel } from "./copy_as.js";
import { fitPlots, motionPlots, shownRows, slicePlots } from "./law_plots.js";
import { maths } from "./maths.js";
import { partsPanel } from "./parts.js";
import { makeTabs } from "./tabs.js";

/** A panel in `host` for the laws of a run; gives `show(entry, context)` and `close()`. */
export function makeLawPanel(host, run) {
  let shown = null; // the law's text and state: an index may belong to another law after the next step
  let place = null;
  let context = null;
  let request = null;
  let tabs = null;
  let lastTab = null;

  async function show(entry, newContext) {
    context = newContext;
    place = { run, index: entry.index, state: context.state };
    const key = `${context.state ?? ""}\n${entry.text}`;
    if (key === shown) return;
    shown = key;
    request?.abort();
    request = new AbortController();
    host.setAttribute("aria-busy", "true");
    try {
      const law = await getLaw(place, request.signal);
      if (shown !== key) return;
      if (law.text !== entry.text && context.running) {
        shown = null; // the front has moved on: the next snapshot says which law has this index now
        return;
      }
      fill(law, entry);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      shown = null;
      leave();
      refill(host, element("p", { class: "problem", role: "alert" }, problem.message));
    } finally {
      if (shown === key || shown === null) host.removeAttribute("aria-busy");
    }
  }

  function fill(law, entry) {
    leave();
    const { target, kind } = context;
    const formula = element("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "The law" });
    const showFormula = (latex, text) => refill(formula, maths(latex, text, { display: true }));
    showFormula(law.latex, law.text);
    const tried = element("p", { class: "tried", hidden: true }, "With constants that you moved; the law of the run is unchanged.");
    tabs = makeTabs(
      [
        kind === "motion" && { key: "motion", label: "Motion", fill: (panel) => withPlots(panel, (plots) => motionPlots(panel, plots)) },
        {
          key: "fit",
          label: "Fit",
          fill: (panel) => withPlots(panel, (plots) => {
            put(panel, element("p", { class: "hint" }, `${shownRows(plots)} shown.`));
            return fitPlots(panel, [{ name: "law", colour: "--accent", plots }], target);
          }),
        },
        {
          key: "slices",
          label: "Slices",
          fill: (panel) => withPlots(panel, (plots) => slicePlots(panel, [{ name: "law", colour: "--accent", plots }], target)),
        },
        {
          key: "constants",
          label: "Constants",
          fill: (panel) => {
            const end = constantsPanel(panel, place, law, target, (trial) => {
              showFormula(trial?.latex ?? law.latex, trial?.text ?? law.text);
              tried.hidden = trial === null;
            });
            return () => {
              end();
              showFormula(law.latex, law.text);
              tried.hidden = true;
            };
          },
        },
        { key: "parts", label: "Parts", fill: (panel) => partsPanel(panel, law) },
        { key: "others", label: "Alternatives", fill: (panel) => alternativesPanel(panel, context.alternatives) },
        { key: "compare", label: "Compare", fill: (panel) => comparePanel(panel, place, { ...entry, ...law }, context.front, target) },
        { key: "copy", label: "Copy", fill: (panel) => copyPanel(panel, law) },
      ].filter(Boolean),
      "About this law",
      lastTab,
    );
    refill(
      host,
      element("h2", { class: "law-title" }, entry.index === context.marked ? "The marked law" : `The law of size ${number(law.complexity)}`),
      formula,
      tried,
      element(
        "dl",
        { class: "numbers" },
        [
          ["loss", number(law.loss, 5)],
          ["R²", number(law.r2, 6)],
          ["size", number(law.complexity)],
          entry.score !== undefined && ["score", number(entry.score, 3)],
        ]
          .filter(Boolean)
          .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
      ),
      tabs.node,
    );
    tabs.open(tabs.current());
  }

  // Plots are asked for when their tab is opened, and only then.
  function withPlots(panel, draw) {
    const wish = new AbortController();
    let end = () => {};
    const waiting = element("p", { class: "hint" }, "Computing …");
    put(panel, waiting);
    getPlots(place, null, wish.signal)
      .then((plots) => {
        waiting.remove();
        if (!wish.signal.aborted) end = draw(plots);
      })
      .catch((problem) => {
        waiting.remove();
        if (problem.name !== "AbortError") put(panel, element("p", { class: "problem", role: "alert" }, problem.message));
      });
    return () => {
      wish.abort();
      end();
    };
  }

  function leave() {
    if (!tabs) return;
    lastTab = tabs.current();
    tabs.close();
    tabs = null;
  }

  return {
    show,
    close() {
      request?.abort();
      leave();
    },
  };
}

function alternativesPanel(host, alternatives) {
  if (!alternatives?.length) {
    put(host, element("p", { class: "hint" }, "No other law explains the data about as well, or the run has not compared them yet."));
    return;
  }
  put(
    host,
    element("p", { class: "hint" }, "Laws that these data do not rule out beside the marked one, with the weight that the data give each of them."),
    element(
      "table",
      { class: "parts" },
      element("caption", { class: "unseen" }, "Laws that explain the data about as well"),
      element("thead", {}, element("tr", {}, ["law", "weight", "loss"].map((name) => element("th", { scope: "col" }, name)))),
      element(
        "tbody",
        {},
        alternatives.map((one) =>
          element(
            "tr",
            {},
            element("td", { class: "law-cell" }, element("div", { class: "scroll" }, maths(one.latex, one.text))),
            element("td", { class: "narrow" }, percent(one.weight)),
            element("td", { class: "narrow" }, number(one.loss)),
          ),
        ),
      ),
    ),
  );
}
