// A chart on a canvas: uPlot gives axes and scales; dots, lines, steps and heat maps are drawn here, since a law's
// plots have unsorted and repeated x, which uPlot's own series do not take.
//
// A layer is {kind: "dots" | "line" | "steps" | "heat", x, y, z?, colour, size?, dash?, opacity?, tip?(i), pick?(i)}:
// x and y are arrays of numbers or null; colour is the name of a custom property of the style sheet; `tip` gives what is
// shown beside the pointer for point i, `pick` is called when point i is clicked.

import uPlot from "./vendor/uplot/uPlot.esm.js";
import { element, refill } from "./dom.js";
import { number, superscript } from "./format.js";
import { colour, onThemeChange } from "./theme.js";

const PADDING = 0.05; // part of the range that stays free on either side
const REACH = 24; // pixels: a point so near to the pointer is the one that is meant
const LABELS_ON_LOG_AXIS = 6;
const FONT = "12px system-ui, sans-serif";
// Stops of a colour scale with even steps of lightness, dark to light, that also reads in grey and with colour blindness.
const HEAT = [[48, 18, 92], [51, 76, 140], [33, 126, 141], [52, 170, 120], [140, 206, 74], [250, 229, 60]];

/**
 * A chart in `host`. Options: x and y as {label, log}; height in pixels; `square`: as high as wide, up to `height`.
 * Gives `draw(layers, description)`, where the description is read by screen readers, `setLog` and `destroy()`.
 */
export function makeChart(host, { x = {}, y = {}, height = 240, square = false } = {}) {
  let layers = [];
  let ranges = { x: [0, 1], y: [0, 1] };
  let logs = { x: false, y: false };
  const wished = { x: Boolean(x.log), y: Boolean(y.log) };
  let plot = null;
  let palette = new Map();
  let nearest = null;
  const tip = element("div", { class: "tip", hidden: true });
  host.classList.add("chart");
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", "Chart without data yet");

  const paint = (name) => {
    if (!palette.has(name)) palette.set(name, colour(name, host));
    return palette.get(name);
  };

  function axis(options, key) {
    return {
      scale: key,
      side: key === "x" ? 2 : 3,
      stroke: () => paint("--ink-soft"),
      font: FONT,
      labelFont: FONT,
      label: options.label,
      labelSize: 18,
      labelGap: 2,
      gap: 4,
      size: key === "x" ? 26 : 52,
      grid: { stroke: () => paint("--grid"), width: 1 },
      ticks: { show: false },
      splits: logs[key] ? (_, __, low, high) => decades(low, high) : undefined,
      filter: (_, splits) => splits, // all are labelled: uPlot's own filter leaves out some powers of ten
      values: (_, values) => values.map((value) => (logs[key] ? powerOfTen(value) : tickLabel(value, values))),
    };
  }

  function build() {
    plot?.destroy();
    plot = null;
    const width = host.clientWidth;
    if (!width) return;
    plot = new uPlot(
      {
        width,
        height: heightFor(width),
        padding: [10, 14, 0, 0],
        legend: { show: false },
        cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: {
          x: { time: false, distr: logs.x ? 3 : 1, range: () => ranges.x },
          y: { distr: logs.y ? 3 : 1, range: () => ranges.y },
        },
        series: [{}, { show: true, paths: () => null, points: { show: false } }],
        axes: [axis(x, "x"), axis(y, "y")],
        hooks: { draw: [drawLayers], setCursor: [movePointer] },
      },
      [ranges.x, ranges.y],
      host,
    );
    plot.over.append(tip);
    plot.over.addEventListener("click", () => nearest?.layer.pick?.(nearest.index));
  }

  function heightFor(width) {
    return square ? Math.min(width, height) : height;
  }

  function place(layer, index) {
    return [plot.valToPos(clipped(layer.x[index], "x"), "x", true), plot.valToPos(clipped(layer.y[index], "y"), "y", true)];
  }

  // Zero has no place on a log axis: it is drawn at the lower end.
  function clipped(value, key) {
    return logs[key] && value !== null && value <= ranges[key][0] ? ranges[key][0] : value;
  }

  function drawLayers(u) {
    const canvas = u.ctx;
    const ratio = devicePixelRatio || 1;
    canvas.save();
    canvas.beginPath();
    canvas.rect(u.bbox.left - 6 * ratio, u.bbox.top - 6 * ratio, u.bbox.width + 12 * ratio, u.bbox.height + 12 * ratio);
    canvas.clip();
    for (const layer of layers) {
      canvas.globalAlpha = layer.opacity ?? 1;
      if (layer.kind === "heat") drawHeat(u, canvas, layer);
      else if (layer.kind === "dots") drawDots(canvas, layer, ratio);
      else drawLine(canvas, layer, ratio);
    }
    canvas.restore();
  }

  function drawDots(canvas, layer, ratio) {
    const radius = ((layer.size ?? 5) * ratio) / 2;
    canvas.beginPath();
    for (let i = 0; i < layer.x.length; i += 1) {
      if (!isNumber(layer.x[i]) || !isNumber(layer.y[i])) continue;
      const [left, top] = place(layer, i);
      canvas.moveTo(left + radius, top);
      canvas.arc(left, top, radius, 0, 2 * Math.PI);
    }
    if (layer.ring) {
      canvas.lineWidth = 2 * ratio;
      canvas.strokeStyle = paint(layer.colour);
      canvas.stroke();
    } else {
      canvas.fillStyle = paint(layer.colour);
      canvas.fill();
    }
  }

  function drawLine(canvas, layer, ratio) {
    canvas.beginPath();
    let pen = false;
    let lastTop = 0;
    for (let i = 0; i < layer.x.length; i += 1) {
      if (!isNumber(layer.x[i]) || !isNumber(layer.y[i])) {
        pen = false;
        continue;
      }
      const [left, top] = place(layer, i);
      if (!pen) canvas.moveTo(left, top);
      else {
        if (layer.kind === "steps") canvas.lineTo(left, lastTop);
        canvas.lineTo(left, top);
      }
      pen = true;
      lastTop = top;
    }
    canvas.lineWidth = (layer.size ?? 2) * ratio;
    canvas.lineJoin = "round";
    canvas.setLineDash((layer.dash ?? []).map((length) => length * ratio));
    canvas.strokeStyle = paint(layer.colour);
    canvas.stroke();
    canvas.setLineDash([]);
  }

  function drawHeat(u, canvas, layer) {
    const [low, high] = rangeOf(layer.z.flat());
    const lefts = edges(layer.x).map((value) => u.valToPos(value, "x", true));
    const tops = edges(layer.y).map((value) => u.valToPos(value, "y", true));
    layer.z.forEach((row, i) =>
      row.forEach((value, j) => {
        if (!isNumber(value)) return;
        canvas.fillStyle = heatColour((value - low) / (high - low || 1));
        // One pixel more than the cell, so that no seam shows between two of them.
        canvas.fillRect(lefts[j], tops[i + 1], lefts[j + 1] - lefts[j] + 1, tops[i] - tops[i + 1] + 1);
      }),
    );
  }

  function movePointer(u) {
    const { left, top } = u.cursor;
    nearest = left < 0 ? null : nearestPoint(u, left, top);
    u.over.classList.toggle("pickable", Boolean(nearest?.layer.pick));
    if (!nearest) {
      tip.hidden = true;
      return;
    }
    refill(tip, nearest.layer.tip(nearest.index));
    tip.hidden = false;
    const width = tip.offsetWidth;
    const height = tip.offsetHeight;
    const across = nearest.left + 14 + width > u.over.clientWidth ? nearest.left - 14 - width : nearest.left + 14;
    tip.style.left = `${Math.max(across, -60)}px`;
    tip.style.top = `${Math.max(Math.min(nearest.top - height / 2, u.over.clientHeight - height), 0)}px`;
  }

  function nearestPoint(u, left, top) {
    let found = null;
    let least = REACH * REACH;
    for (const layer of layers) {
      if (!layer.tip) continue;
      if (layer.kind === "heat") {
        const j = nearestIndex(layer.x, u.posToVal(left, "x"));
        const i = nearestIndex(layer.y, u.posToVal(top, "y"));
        found ??= { layer, index: [i, j], left, top };
        continue;
      }
      for (let i = 0; i < layer.x.length; i += 1) {
        if (!isNumber(layer.x[i]) || !isNumber(layer.y[i])) continue;
        const across = u.valToPos(clipped(layer.x[i], "x"), "x") - left;
        const down = u.valToPos(clipped(layer.y[i], "y"), "y") - top;
        const distance = across * across + down * down;
        if (distance < least) {
          least = distance;
          found = { layer, index: i, left: left + across, top: top + down };
        }
      }
    }
    return found;
  }

  const observer = new ResizeObserver(() => {
    if (!host.clientWidth) return;
    if (!plot) build();
    else if (plot.width !== host.clientWidth) {
      plot.setSize({ width: host.clientWidth, height: heightFor(host.clientWidth) });
    }
  });
  observer.observe(host);
  const endTheme = onThemeChange(() => {
    palette = new Map();
    plot?.redraw(false, true);
  });

  return {
    /** Wish for a log axis or an even one, from the next drawing on. */
    setLog(key, on) {
      wished[key] = on;
    },
    draw(newLayers, description) {
      layers = newLayers.map((layer) => ({ ...layer }));
      host.setAttribute("aria-label", description);
      const xs = layers.flatMap((layer) => layer.x);
      const ys = layers.flatMap((layer) => layer.y);
      const wanted = { x: wished.x && canBeLog(xs), y: wished.y && canBeLog(ys) };
      const rebuilt = !plot || wanted.x !== logs.x || wanted.y !== logs.y;
      logs = wanted;
      const heat = layers.some((layer) => layer.kind === "heat");
      ranges = { x: axisRange(xs, logs.x, heat ? 0 : PADDING), y: axisRange(ys, logs.y, heat ? 0 : PADDING) };
      if (rebuilt) build();
      else plot.setData([ranges.x, ranges.y]);
    },
    destroy() {
      observer.disconnect();
      endTheme();
      plot?.destroy();
    },
  };
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function rangeOf(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!isNumber(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

// Losses may be negative (a likelihood) or all zero: then a log axis has nothing to show.
function canBeLog(values) {
  return values.some((value) => value > 0) && !values.some((value) => value < 0);
}

function axisRange(values, log, padding) {
  if (log) {
    const [low, high] = rangeOf(values.filter((value) => value > 0));
    const some = values.some((value) => value === 0);
    const span = Math.max(Math.log10(high / low), 0.5);
    return [low * 10 ** -(padding * span + (some ? 0.1 * span + 0.5 : 0.1)), high * 10 ** (padding * span + 0.1)];
  }
  const [low, high] = rangeOf(values);
  const free = padding * (high - low) || (padding ? Math.abs(high) * padding || 0.5 : 0);
  return [low - free, high + free];
}

function decades(low, high) {
  const first = Math.ceil(Math.log10(low));
  const last = Math.floor(Math.log10(high));
  const stride = Math.max(1, Math.ceil((last - first + 1) / LABELS_ON_LOG_AXIS));
  const found = [];
  for (let power = first; power <= last; power += stride) found.push(Number(`1e${power}`)); // 10 ** -4 is not 0.0001
  return found.length > 1 ? found : [low * 1.05, high / 1.05];
}

function powerOfTen(value) {
  const power = Math.log10(value);
  const whole = Math.round(power);
  if (Math.abs(power - whole) > 1e-6) return number(value, 2);
  if (whole === 0) return "1";
  return whole > -3 && whole < 4 ? number(value) : `10${superscript(whole)}`;
}

// Ticks a small step apart need the digits that tell them apart.
function tickLabel(value, all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : 0;
  const size = Math.max(...all.map(Math.abs));
  const digits = step ? Math.max(Math.ceil(Math.log10(size / step)) + 1, 2) : 4;
  return number(Math.abs(value) < step * 1e-9 ? 0 : value, Math.min(digits, 8));
}

function nearestIndex(values, wanted) {
  let best = 0;
  values.forEach((value, i) => {
    if (Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = i;
  });
  return best;
}

// Borders of the cells around the values of a grid, which grow.
function edges(values) {
  const inner = values.slice(1).map((value, i) => (value + values[i]) / 2);
  return [values[0], ...inner, values[values.length - 1]];
}

/** The colour of a heat map for a value from 0 to 1. */
export function heatColour(share) {
  const spot = Math.min(Math.max(share, 0), 1) * (HEAT.length - 1);
  const below = Math.min(Math.floor(spot), HEAT.length - 2);
  const mixed = HEAT[below].map((start, i) => Math.round(start + (HEAT[below + 1][i] - start) * (spot - below)));
  return `rgb(${mixed.join(",")})`;
}

/** The scale of a heat map's colours, with its ends. */
export function heatLegend(values, label) {
  const [low, high] = rangeOf(values.flat());
  const strip = element("canvas", { width: 120, height: 1, class: "heat-strip", "aria-hidden": "true" });
  const canvas = strip.getContext("2d");
  for (let i = 0; i < 120; i += 1) {
    canvas.fillStyle = heatColour(i / 119);
    canvas.fillRect(i, 0, 1, 1);
  }
  return element("div", { class: "heat-legend" }, number(low, 3), strip, number(high, 3), element("span", {}, label));
}
