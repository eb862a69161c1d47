// A run inside a notebook: progress, front, laws and the law that is looked at, from the same modules as the page.
// It lives in a shadow root, so that neither its style sheet nor the notebook's reaches the other. The maths is MathML,
// which needs no fonts.

import { element, put, refill, setText, shortened } from "./dom.js";
import { counted, derivative, number } from "./format.js";
import { makeFrontPlot } from "./front_plot.js";
import { makeLawsTable } from "./laws_table.js";
import { maths } from "./maths.js";
import { makeProgress, makeSchedule, statusLabel } from "./progress.js";

const OUTPUT = "mathml";

/** Show `model.get("snapshot")` in `el` now and after each change. Gives the function that ends this. */
export function showWidget(model, el, style) {
  const host = element("div");
  el.append(host);
  host.style.colorScheme = isDark() ? "dark" : "light";
  const root = host.attachShadow({ mode: "open" });
  const title = element("h2", {});
  const status = element("span");
  const message = element("p", { class: "message", hidden: true });
  const progress = makeProgress();
  const schedule = makeSchedule();
  const fronts = element("div", { class: "widget-fronts" });
  const views = new Map();
  put(
    root,
    element("style", {}, style),
    element(
      "div",
      { class: "widget run" },
      element("div", { class: "title-line" }, title, status),
      message,
      progress.node,
      fronts,
      element("details", {}, element("summary", {}, "What the search did"), schedule.node),
    ),
  );

  function show() {
    const snapshot = model.get("snapshot");
    if (!snapshot?.status) return;
    setText(title, shortened(snapshot.name ?? "", 80));
    refill(status, statusLabel(snapshot.status));
    setText(message, snapshot.message ?? "");
    message.hidden = !snapshot.message;
    progress.show(snapshot);
    schedule.show(snapshot.schedule ?? [], snapshot.status === "running" ? snapshot.move : null);
    const parts =
      snapshot.kind === "motion"
        ? (snapshot.states ?? []).map((state) => ({ ...state, label: derivative(state.name, snapshot) }))
        : [{ name: "", label: snapshot.target ?? "", front: snapshot.front ?? [], selected: snapshot.selected }];
    for (const part of parts) {
      if (!views.has(part.name)) views.set(part.name, makeFront(fronts, part.label));
      views.get(part.name).show(part.front, part.selected);
    }
  }

  model.on("change:snapshot", show);
  show();
  return () => {
    model.off("change:snapshot", show);
    for (const view of views.values()) view.destroy();
    host.remove();
  };
}

// Jupyter and VS Code say which colours they have; other notebooks are light.
function isDark() {
  return document.body.dataset.jpThemeLight === "false" || document.body.classList.contains("vscode-dark");
}

function makeFront(host, label) {
  const law = element("section", { class: "card law", "aria-label": "The law" });
  const size = element("span", { class: "hint" });
  const plotPlace = element("div");
  const tablePlace = element("div", { class: "laws-scroll" });
  put(
    host,
    element(
      "div",
      { class: "widget-front" },
      law,
      element("section", { class: "card" }, element("h2", {}, shortened(label, 40), " ", size), plotPlace),
      element("section", { class: "card" }, tablePlace),
    ),
  );
  let last = { front: [], selected: null };
  let chosen = null; // the text of the law that was clicked; null: the marked one
  const plot = makeFrontPlot(plotPlace, { onPick: pick, output: OUTPUT, height: 240 });
  const table = makeLawsTable(tablePlace, { onPick: pick, output: OUTPUT, title: `Laws for ${shortened(label, 60)}` });

  function pick(index) {
    chosen = last.front.find((one) => one.index === index)?.text ?? null;
    show(last.front, last.selected);
  }

  function show(front, selected) {
    last = { front, selected };
    const marked = front.find((one) => one.index === selected) ?? null;
    const seen = front.find((one) => one.text === chosen) ?? marked ?? front[front.length - 1] ?? null;
    setText(size, front.length ? counted(front.length, "law") : "no laws yet");
    plot.show(front, selected, seen?.index ?? null);
    table.show(front, selected, seen?.index ?? null);
    const key = `${seen?.text}\n${seen === marked}`;
    if (!seen || law.dataset.key === key) return;
    law.dataset.key = key;
    refill(
      law,
      element("h2", { class: "law-title" }, seen === marked ? "The marked law" : `The law of size ${number(seen.complexity)}`),
      element("div", { class: "formula" }, maths(seen.latex, seen.text, { display: true, output: OUTPUT })),
      element(
        "dl",
        { class: "numbers" },
        [["loss", number(seen.loss, 5)], ["R²", number(seen.r2, 6)], ["size", number(seen.complexity)]].map(([name, value]) =>
          element("div", {}, element("dt", {}, name), element("dd", {}, value)),
        ),
      ),
      element("code", {}, shortened(seen.text, 400)),
    );
  }

  return { show, destroy: plot.destroy };
}
