// The plots of a law: parity, residuals, rows in order, slices through the law, its surface, and motion in time and
// phase. Each function fills a host with charts for the values that the server sends, and gives what takes them away.
// `series` is a list of {name, colour, plots}: one law, or two that are compared.

import { heatLegend, makeChart } from "./chart.js";
import { element, put, shortened } from "./dom.js";
import { count, number } from "./format.js";

const MANY_ROWS = 400; // from so many dots on they are small and see-through

function figure(host, title, options, draw, legend = null) {
  const place = element("div");
  put(host, element("figure", { class: options.wide ? "wide" : null }, element("figcaption", {}, title, legend), place));
  const chart = makeChart(place, options);
  draw(chart);
  return chart;
}

function all(charts) {
  return () => charts.forEach((chart) => chart.destroy());
}

function dots(length) {
  return length > MANY_ROWS ? { kind: "dots", size: 4, opacity: 0.45 } : { kind: "dots", size: 6, opacity: 0.75 };
}

function pair(xName, yName, x, y) {
  return (i) => `${xName} ${number(x[i])}, ${yName} ${number(y[i])}`;
}

function ends(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.length ? [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))] : [0, 1];
}

/** How many rows are shown, where they are not all. */
export function shownRows(plots) {
  return plots.rows_shown < plots.rows ? `${count(plots.rows_shown)} of ${count(plots.rows)} rows` : `${count(plots.rows)} rows`;
}

/** A key of colours, where there are two laws. */
function keyOf(series) {
  if (series.length < 2) return null;
  return element("span", { class: "key" }, series.map((one) => element("span", { class: `key-${one.colour.slice(2)}` }, one.name)));
}

export function fitPlots(host, series, target) {
  const grid = put(host, element("div", { class: "plots" })).lastChild;
  const rows = shownRows(series[0].plots);
  const name = shortened(target, 24);
  const parity = figure(grid, "Law against data", { x: { label: name }, y: { label: "law" }, height: 290 }, (chart) => {
    const [low, high] = ends(series.flatMap((one) => [...one.plots.parity.y, ...one.plots.parity.predicted]));
    chart.draw(
      [
        { kind: "line", x: [low, high], y: [low, high], colour: "--ink-soft", size: 1, dash: [5, 4] },
        ...series.map(({ plots: { parity: { y, predicted } }, colour }) => ({
          ...dots(y.length), x: y, y: predicted, colour, tip: pair("data", "law", y, predicted),
        })),
      ],
      `Parity plot: what the law predicts against the measured ${name}, ${rows}. On the dashed line both agree.`,
    );
  }, keyOf(series));
  const residual = figure(grid, "Residuals", { x: { label: "law" }, y: { label: "data − law" }, height: 290 }, (chart) => {
    const [low, high] = ends(series.flatMap((one) => one.plots.residual.predicted));
    chart.draw(
      [
        { kind: "line", x: [low, high], y: [0, 0], colour: "--ink-soft", size: 1, dash: [5, 4] },
        ...series.map(({ plots: { residual: { predicted, residual: left } }, colour }) => ({
          ...dots(left.length), x: predicted, y: left, colour, tip: pair("law", "residual", predicted, left),
        })),
      ],
      `Residuals against the law's value, ${rows}. A good law leaves no pattern.`,
    );
  });
  const order = figure(grid, "Row by row", { x: { label: "row" }, y: { label: name }, height: 230, wide: true }, (chart) => {
    const places = series[0].plots.order.y.map((_, i) => i + 1);
    chart.draw(
      [
        { ...dots(places.length), x: places, y: series[0].plots.order.y, colour: "--data" },
        ...series.map(({ plots, colour }) => ({ kind: "line", x: places, y: plots.order.predicted, colour, size: 1.5 })),
      ],
      `Measured ${name} as dots and the law as a line, in the order of the table, ${rows}.`,
    );
  });
  return all([parity, residual, order]);
}

/** The parity plot alone; gives `draw(plots)`, so that sliders can renew it without flicker, and `destroy`. */
export function parityPlot(host, target) {
  const name = shortened(target, 24);
  const chart = figure(host, "Law against data", { x: { label: name }, y: { label: "law" }, height: 290 }, () => {});
  return {
    draw({ parity: { y, predicted } }) {
      const [low, high] = ends([...y, ...predicted]);
      chart.draw(
        [
          { kind: "line", x: [low, high], y: [low, high], colour: "--ink-soft", size: 1, dash: [5, 4] },
          { ...dots(y.length), x: y, y: predicted, colour: "--accent", tip: pair("data", "law", y, predicted) },
        ],
        `Parity plot of the law with these constants against the measured ${name}.`,
      );
    },
    destroy: chart.destroy,
  };
}

export function slicePlots(host, series, target) {
  const name = shortened(target, 24);
  const [{ plots }] = series;
  if (!plots.slices.length) {
    put(host, element("p", { class: "hint" }, "This law is a constant: there is nothing to vary."));
    return () => {};
  }
  put(host, element("p", { class: "hint" }, "One input varies, the others rest at their medians. Dots are the rows, with their own other inputs."));
  const grid = put(host, element("div", { class: "plots" })).lastChild;
  const charts = plots.slices.map((slice, k) =>
    figure(grid, shortened(slice.column, 40), { x: { label: shortened(slice.column, 24) }, y: { label: name }, height: 230 }, (chart) => {
      const lines = series.map((one) => ({ colour: one.colour, slice: one.plots.slices.find((other) => other.column === slice.column) }));
      chart.draw(
        [
          { ...dots(slice.rows_x.length), x: slice.rows_x, y: slice.rows_y, colour: "--data", tip: pair(shortened(slice.column, 24), name, slice.rows_x, slice.rows_y) },
          ...lines.filter((line) => line.slice).map((line) => ({ kind: "line", x: line.slice.x, y: line.slice.law, colour: line.colour, size: 2.5 })),
        ],
        `The law along ${shortened(slice.column, 40)}, the other inputs at their medians, with the rows as dots.`,
      );
    }, k === 0 ? keyOf(series) : null),
  );
  if (plots.surface && series.length === 1) charts.push(surfacePlot(grid, plots.surface, name));
  return all(charts);
}

function surfacePlot(host, { x_column: xName, y_column: yName, x, y, z }, target) {
  const [across, up] = [shortened(xName, 24), shortened(yName, 24)];
  return figure(host, `${target} over ${across} and ${up}`, { x: { label: across }, y: { label: up }, height: 300 }, (chart) => {
    chart.draw(
      [{ kind: "heat", x, y, z, tip: ([i, j]) => `${across} ${number(x[j])}, ${up} ${number(y[i])}: ${number(z[i][j])}` }],
      `Surface of the law over ${across} and ${up} as a map of colours, the other inputs at their medians.`,
    );
  }, heatLegend(z, target));
}

export function motionPlots(host, plots) {
  const grid = put(host, element("div", { class: "plots" })).lastChild;
  const charts = (plots.time ?? []).map((line) => {
    const name = shortened(line.state, 24);
    return figure(grid, `${name} in time`, { x: { label: "time" }, y: { label: name }, height: 220, wide: true }, (chart) =>
      chart.draw(
        [
          { ...dots(line.t.length), x: line.t, y: line.measured, colour: "--data", tip: pair("time", name, line.t, line.measured) },
          { kind: "line", x: line.t, y: line.simulated, colour: "--accent", size: 2 },
        ],
        `${name} against time: measured as dots, simulated from the first row by the laws as a line.`,
      ),
    );
  });
  if (plots.phase) {
    const { x_state: xState, y_state: yState, measured_x: mx, measured_y: my, simulated_x: sx, simulated_y: sy } = plots.phase;
    const [across, up] = [shortened(xState, 24), shortened(yState, 24)];
    charts.push(
      figure(grid, "Phase plane", { x: { label: across }, y: { label: up }, height: 340 }, (chart) =>
        chart.draw(
          [
            { ...dots(mx.length), x: mx, y: my, colour: "--data", tip: pair(across, up, mx, my) },
            { kind: "line", x: sx, y: sy, colour: "--accent", size: 2 },
          ],
          `Phase plane of ${across} and ${up}: measured as dots, simulated as a line.`,
        ),
      ),
    );
  }
  return all(charts);
}
