// The front as a plot: loss against complexity, the marked law and the one that is looked at. A click looks at a law.

import { makeChart } from "./chart.js";
import { element, put } from "./dom.js";
import { counted, number } from "./format.js";
import { maths } from "./maths.js";

/** A front plot in `host`; gives `show(front, marked, seen)`, both numbers of laws, and `destroy()`. */
export function makeFrontPlot(host, { onPick = () => {}, output = undefined, height = 270 } = {}) {
  const place = element("div");
  const chart = makeChart(place, { x: { label: "complexity" }, y: { label: "loss", log: true }, height });
  let last = [[], null, null];
  put(
    host,
    place,
    element("div", { class: "axes", role: "group", "aria-label": "Log axes" }, logSwitch("log complexity", "x", false), logSwitch("log loss", "y", true)),
  );

  function logSwitch(label, key, on) {
    const box = element("input", {
      type: "checkbox",
      checked: on,
      onchange: () => {
        chart.setLog(key, box.checked);
        plot.show(...last);
      },
    });
    return element("label", {}, box, label);
  }

  const plot = {
    show(front, marked, seen) {
      last = [front, marked, seen];
      const laws = [...front].sort((a, b) => a.complexity - b.complexity);
      const of = (chosen) => chosen.map((law) => law.complexity);
      const losses = (chosen) => chosen.map((law) => law.loss);
      const markedLaws = laws.filter((law) => law.index === marked);
      const seenLaws = laws.filter((law) => law.index === seen);
      chart.draw(
        [
          { kind: "steps", x: of(laws), y: losses(laws), colour: "--accent", size: 1.5, opacity: 0.45 },
          {
            kind: "dots",
            x: of(laws),
            y: losses(laws),
            colour: "--accent",
            size: laws.length > 60 ? 6 : 9,
            tip: (i) => hint(laws[i], laws[i].index === marked, output),
            pick: (i) => onPick(laws[i].index),
          },
          { kind: "dots", x: of(markedLaws), y: losses(markedLaws), colour: "--marked", size: 12 },
          { kind: "dots", ring: true, x: of(seenLaws), y: losses(seenLaws), colour: "--ink", size: 18 },
        ],
        describe(laws, markedLaws[0]),
      );
    },
    destroy: chart.destroy,
  };
  return plot;
}

function hint(law, isMarked, output) {
  return [
    element("div", { class: "tip-law" }, maths(law.latex, law.text, { output })),
    element("div", { class: "tip-numbers" }, `complexity ${law.complexity} · loss ${number(law.loss)}${isMarked ? " · marked" : ""}`),
  ];
}

function describe(laws, marked) {
  if (!laws.length) return "Front: no laws yet.";
  const best = laws[laws.length - 1];
  const start = `Front of ${counted(laws.length, "law")}, loss against complexity. The best has loss ${number(best.loss)}`;
  const rest = marked ? `; marked is the law of complexity ${marked.complexity} with loss ${number(marked.loss)}` : "";
  return `${start}${rest}. The table of laws holds the same.`;
}
