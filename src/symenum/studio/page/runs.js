// The list of all runs of the folder.

import { getInfo, getRuns } from "./api.js";
import { element, refill, shortened } from "./dom.js";
import { counted, moment, number, seconds } from "./format.js";
import { maths } from "./maths.js";
import { statusLabel } from "./progress.js";

const EVERY = 2000; // milliseconds between two looks at the folder

/** Fill `view` with the list, renewed while it is open. Gives the function that leaves the view. */
export function showRuns(view, { onConnection }) {
  document.title = "Runs · symenum studio";
  const place = element("div", { "aria-live": "off" }, element("p", { class: "hint" }, "Looking …"));
  const folder = element("p", { class: "subtitle" });
  let timer = 0;
  let ended = false;
  let known = null;

  refill(
    view,
    element(
      "div",
      { class: "runs" },
      element(
        "header",
        { class: "run-head" },
        element("div", {}, element("h1", {}, "Runs"), folder),
        element("div", { class: "buttons" }, element("a", { class: "button primary", href: "#/new" }, "New search")),
      ),
      place,
    ),
  );
  getInfo().then((info) => (folder.textContent = info.folder), () => {});

  async function look() {
    if (!document.hidden) {
      try {
        const runs = await getRuns();
        if (ended) return;
        onConnection(true, null);
        const text = JSON.stringify(runs);
        if (text !== known) {
          const focused = document.activeElement?.getAttribute?.("href");
          refill(place, runs.length ? runs.map(card) : empty());
          if (focused && place.querySelector("a")) [...place.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus();
        }
        known = text;
      } catch (problem) {
        if (ended) return;
        if (problem.status === 0 || problem.status === 401 || problem.status === 403) onConnection(false, problem);
        else refill(place, element("p", { class: "problem", role: "alert" }, problem.message));
      }
    }
    timer = setTimeout(look, EVERY);
  }
  look();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}

function card(run) {
  const readable = run.status !== "unreadable";
  const name = shortened(run.name ?? run.id, 80);
  return element(
    "article",
    { class: "run-card" },
    element(
      "div",
      { class: "title-line" },
      element("h2", {}, readable ? element("a", { href: `#/runs/${encodeURIComponent(run.id)}` }, name) : name),
      statusLabel(run.status),
    ),
    run.best
      ? element("div", { class: "run-law scroll" }, maths(run.best.latex, run.best.text))
      : element("p", { class: "hint" }, run.message || "No law yet."),
    readable && element(
      "p",
      { class: "subtitle" },
      [
        run.kind === "motion" ? "laws of motion" : run.target && `target ${shortened(run.target, 40)}`,
        run.rows !== null && run.rows !== undefined && counted(run.rows, "row"),
        run.best && `loss ${number(run.best.loss, 3)}`,
        run.elapsed !== null && run.elapsed !== undefined && seconds(run.elapsed),
        run.created && moment(run.created),
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    run.best && run.message ? element("p", { class: "message" }, run.message) : null,
  );
}

function empty() {
  return element(
    "div",
    { class: "empty card" },
    element("h2", {}, "No runs yet"),
    element("p", {}, "Drop a table of numbers into a new search, and watch the laws behind it appear."),
    element("p", {}, element("a", { class: "button primary", href: "#/new" }, "New search")),
  );
}
