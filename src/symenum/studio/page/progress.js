// Where a run stands: status, time, work, what runs now and what each move has brought; also used by the notebook.

import { element, refill, setText } from "./dom.js";
import { count, counted, number, seconds } from "./format.js";

const WORDS = {
  waiting: "waiting", running: "running", finished: "finished", stopped: "stopped", killed: "ended without a word", failed: "failed", unreadable: "cannot be read",
};

/** The status of a run as a small label. */
export function statusLabel(status) {
  return element("span", { class: `status status-${status}` }, WORDS[status] ?? status);
}

/** The strip of numbers above a run; gives {node, show(snapshot)}. */
export function makeProgress() {
  const bar = element("progress", { max: 1, value: 0, "aria-label": "Time used" });
  const facts = element("dl", { class: "facts" });
  const cells = new Map();
  for (const name of ["time", "left", "candidates", "a second", "now"]) {
    const value = element("dd", {}, "–");
    cells.set(name, value);
    facts.append(element("div", { class: name === "now" ? "grow" : null }, element("dt", {}, name), value));
  }
  return {
    node: element("div", { class: "progress" }, bar, facts),
    show(snapshot) {
      const running = snapshot.status === "running";
      const limit = snapshot.time_left === null || snapshot.time_left === undefined ? null : snapshot.elapsed + snapshot.time_left;
      if (running && limit === null) bar.removeAttribute("value");
      else bar.value = running ? Math.min(snapshot.elapsed / (limit || 1), 1) : 1;
      setText(cells.get("time"), seconds(snapshot.elapsed));
      setText(cells.get("left"), running ? seconds(snapshot.time_left) : "–");
      setText(cells.get("candidates"), count(snapshot.scored));
      setText(cells.get("a second"), snapshot.rate ? count(snapshot.rate) : "–");
      setText(cells.get("now"), running ? snapshot.move || "starting" : "–");
    },
  };
}

/** The table of moves: turns, seconds and gain, the move that runs now set off; gives {node, show(schedule, now)}. */
export function makeSchedule() {
  const table = (body, caption) =>
    element(
      "table",
      { class: "schedule" },
      element("caption", { class: "unseen" }, caption),
      element("thead", {}, element("tr", {}, ["move", "turns", "time", "gain"].map((name) => element("th", { scope: "col" }, name)))),
      body,
    );
  const useful = element("tbody");
  const useless = element("tbody");
  const heading = element("summary");
  const rest = element("details", { hidden: true }, heading, table(useless, "Moves that have brought nothing yet"));
  return {
    node: element("div", {}, table(useful, "What each move of the search brought"), rest),
    show(schedule, now) {
      const brought = (row) => row.gain > 0 || row.move === now;
      const idle = schedule.filter((row) => !brought(row));
      fill(useful, schedule.filter(brought), now);
      fill(useless, idle, now);
      setText(heading, `${counted(idle.length, "move")} without gain`);
      rest.hidden = !idle.length;
    },
  };

  function fill(body, schedule, now) {
    const most = Math.max(...schedule.map((row) => row.gain ?? 0), 1e-9);
    refill(
      body,
      schedule.map((row) =>
        element(
          "tr",
          { class: row.move === now ? "now" : null },
          element("td", {}, row.move),
          element("td", { class: "narrow" }, number(row.turns)),
          element("td", { class: "narrow" }, seconds(row.seconds)),
          element(
            "td",
            {},
            element(
              "div",
              { class: "share" },
              element("meter", { min: 0, max: 1, value: Math.max(row.gain ?? 0, 0) / most, "aria-label": `gain ${number(row.gain, 3)}` }),
              element("span", {}, number(row.gain, 3)),
            ),
          ),
        ),
      ),
    );
  }
}
