// The constants of a law as sliders, with the loss beside them, "fit again" and the errors of the constants.

import { getPlots, tryConstants } from "./api.js";
import { announce } from "./announce.js";
import { element, put, setText } from "./dom.js";
import { number } from "./format.js";
import { parityPlot } from "./law_plots.js";

const STEPS = 1000; // places of a slider

/**
 * Fill `host` for a law. `onTried(trial)` is told what the server says about each choice of constants, null for the
 * law's own. Gives the function that ends all requests.
 */
export function constantsPanel(host, place, law, target, onTried) {
  if (!law.constants.length) {
    put(host, element("p", { class: "hint" }, "This law has no constants that could be moved."));
    return () => {};
  }
  const original = law.constants.map((constant) => constant.value);
  let values = [...original];
  let request = null; // at most one at a time; what is moved meanwhile is asked for afterwards
  let waiting = null;
  let ended = false;

  const loss = element("output", { class: "trial-loss", "aria-live": "polite" });
  const change = element("span", { class: "trial-change" });
  const rows = law.constants.map((constant, i) => makeSlider(constant, i, (value) => {
    values[i] = value;
    ask(false);
  }));
  const fit = element("button", { type: "button", class: "primary", onclick: () => ask(true) }, "Fit again");
  const reset = element("button", { type: "button", onclick: restore }, "Back to the law");
  const problem = element("p", { class: "problem", role: "alert", hidden: true });
  const plots = element("div", { class: "trial-plot" });
  put(
    host,
    element(
      "div",
      { class: "trial" },
      element(
        "div",
        { class: "trial-controls" },
        element("p", { class: "trial-numbers" }, "Loss ", loss, " ", change),
        element("div", { class: "sliders" }, rows.map((row) => row.node)),
        element("div", { class: "buttons" }, fit, reset),
        problem,
      ),
      plots,
    ),
  );
  const chart = parityPlot(plots, target);
  showLoss(law.loss);
  drawPlot(null);

  function showLoss(value) {
    setText(loss, number(value, 5));
    const ratio = value / law.loss;
    const worse = Number.isFinite(ratio) && Math.abs(ratio - 1) > 5e-4;
    setText(change, worse ? `${number(ratio, 3)} times that of the law` : "");
  }

  function restore() {
    values = [...original];
    rows.forEach((row, i) => row.set(values[i]));
    waiting = null;
    showLoss(law.loss);
    onTried(null);
    drawPlot(null);
  }

  async function ask(again) {
    if (request) {
      waiting = again || waiting === "fit" ? "fit" : "try";
      return;
    }
    request = new AbortController();
    try {
      const trial = await tryConstants(place, values, again, request.signal);
      if (ended) return;
      problem.hidden = true;
      if (again) {
        values = [...trial.constants];
        rows.forEach((row, i) => row.set(values[i]));
        announce(`Fitted again: loss ${number(trial.loss)}`);
      }
      showLoss(trial.loss);
      onTried(trial);
      await drawPlot(values);
    } catch (error) {
      if (ended) return;
      setText(problem, error.message);
      problem.hidden = false;
    } finally {
      request = null;
      const next = waiting;
      waiting = null;
      if (next && !ended) ask(next === "fit");
    }
  }

  async function drawPlot(constants) {
    try {
      const found = await getPlots(place, constants, request?.signal, 600);
      if (!ended) chart.draw(found);
    } catch (error) {
      if (ended) return;
      setText(problem, error.message);
      problem.hidden = false;
    }
  }

  return () => {
    ended = true;
    request?.abort();
    chart.destroy();
  };
}

function makeSlider(constant, i, onChange) {
  const low = Math.min(constant.low ?? constant.value - 1, constant.value);
  const high = Math.max(constant.high ?? constant.value + 1, constant.value);
  const span = high - low || 1;
  const name = `Constant ${i + 1}`;
  const slider = element("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": `${name}, slider` });
  const box = element("input", { type: "number", step: "any", "aria-label": `${name}, value` });
  const error = constant.error === null || constant.error === undefined ? null : `± ${number(constant.error, 2)}`;

  function set(value) {
    slider.value = String(Math.round(((value - low) / span) * STEPS));
    slider.setAttribute("aria-valuetext", number(value));
    box.value = String(Number(value.toPrecision(7)));
  }
  slider.addEventListener("input", () => {
    const value = low + (Number(slider.value) / STEPS) * span;
    slider.setAttribute("aria-valuetext", number(value));
    box.value = String(Number(value.toPrecision(7)));
    onChange(value);
  });
  box.addEventListener("change", () => {
    const value = Number(box.value);
    if (box.value.trim() === "" || !Number.isFinite(value)) return;
    set(value);
    onChange(value);
  });
  set(constant.value);
  return {
    set,
    node: element(
      "div",
      { class: "slider" },
      element("span", { class: "slider-name" }, name),
      slider,
      box,
      element("span", { class: "slider-error", title: "standard error" }, error ?? ""),
    ),
  };
}
