// A run, alive or ended: its front, its laws, the law that is looked at, its progress, and stop and resume.

import { followRun, resumeRun, stopRun } from "./api.js";
import { announce } from "./announce.js";
import { downloads } from "./copy_as.js";
import { element, freshId, refill, setText, shortened } from "./dom.js";
import { count, counted, derivative, moment } from "./format.js";
import { makeFrontPlot } from "./front_plot.js";
import { makeLawPanel } from "./law.js";
import { makeLawsTable } from "./laws_table.js";
import { makeProgress, makeSchedule, statusLabel } from "./progress.js";

const CAN_RESUME = new Set(["finished", "stopped", "killed", "failed"]);
const MORE_TIME = 60; // seconds that "resume" offers

/** Fill `view` with a run; `wish` may name a law and a state. Gives the function that leaves the view. */
export function showRun(view, id, wish, { onConnection }) {
  let snapshot = null;
  let stateName = wish.get("state");
  let seenText = null; // the law that the user has chosen; null: the marked one
  let wishedIndex = wish.has("law") ? Number(wish.get("law")) : null;
  let saidStatus = null;

  const title = element("h1", {}, "…");
  const status = element("span", { class: "status-place" });
  const subtitle = element("p", { class: "subtitle" });
  const message = element("p", { class: "message", role: "status", hidden: true });
  const actions = element("div", { class: "buttons" });
  const problem = element("p", { class: "problem", role: "alert", hidden: true });
  const progress = makeProgress();
  const states = element("div", { class: "states", role: "group", "aria-label": "State", hidden: true });
  const plotPlace = element("div");
  const tablePlace = element("div", { class: "laws-scroll" });
  const lawPlace = element("section", { class: "card law", "aria-label": "The law" }, element("p", { class: "hint" }, "The first law will appear here."));
  const schedule = makeSchedule();
  const confidence = element("ul", { class: "confidence" });
  const confidenceCard = element("section", { class: "card", hidden: true }, element("h2", {}, "How sure"), confidence);
  const refused = element("ul", { class: "refused" });
  const refusedPart = element("details", { hidden: true }, element("summary", {}, "Laws that were refused"), refused);
  const files = element("div");
  const settings = element("dl", { class: "settings" });
  const lawCount = element("span", { class: "hint" });
  const left = element(
    "div",
    { class: "run-left" },
    element("section", { class: "card" }, element("h2", {}, "Front ", lawCount), plotPlace),
    element("section", { class: "card" }, element("h2", {}, "Laws"), tablePlace),
    element("section", { class: "card done-by" }, element("h2", {}, "What the search did"), schedule.node, refusedPart),
  );
  const filesCard = element("section", { class: "card" }, element("h2", {}, "Files"), files, element("details", {}, element("summary", {}, "Settings"), settings));

  refill(
    view,
    element(
      "div",
      { class: "run" },
      element("header", { class: "run-head" }, element("div", {}, element("div", { class: "title-line" }, title, status), subtitle), actions),
      message,
      problem,
      progress.node,
      states,
      element(
        "div",
        { class: "run-body" },
        left,
        element("div", { class: "run-right" }, lawPlace, confidenceCard, filesCard),
      ),
    ),
  );
  const frontPlot = makeFrontPlot(plotPlace, { onPick: pick });
  const lawsTable = makeLawsTable(tablePlace, { onPick: pick });
  const lawPanel = makeLawPanel(lawPlace, id);

  function parts() {
    if (snapshot.kind !== "motion") return { name: null, front: snapshot.front ?? [], selected: snapshot.selected };
    return snapshot.states?.find((state) => state.name === stateName) ?? snapshot.states?.[0] ?? { name: null, front: [], selected: null };
  }

  function pick(index) {
    seenText = parts().front.find((law) => law.index === index)?.text ?? null;
    remember(index);
    showLaws();
  }

  function remember(index) {
    const query = new URLSearchParams();
    if (index !== null) query.set("law", index);
    if (snapshot.kind === "motion") query.set("state", parts().name);
    const text = query.toString();
    history.replaceState(null, "", `#/runs/${encodeURIComponent(id)}${text ? `?${text}` : ""}`);
  }

  function showLaws() {
    const { name, front, selected } = parts();
    if (wishedIndex !== null && front.length) {
      seenText = front.find((law) => law.index === wishedIndex)?.text ?? null;
      wishedIndex = null;
    }
    const marked = front.find((law) => law.index === selected) ?? null;
    const seen = front.find((law) => law.text === seenText) ?? marked ?? front[front.length - 1] ?? null;
    setText(lawCount, front.length ? counted(front.length, "law") : "");
    frontPlot.show(front, selected, seen?.index ?? null);
    lawsTable.show(front, selected, seen?.index ?? null);
    if (seen) {
      lawPanel.show(seen, {
        state: name,
        front,
        marked: selected,
        kind: snapshot.kind,
        target: snapshot.kind === "motion" ? derivative(name, snapshot) : snapshot.target,
        alternatives: snapshot.alternatives ?? [],
        running: snapshot.status === "running",
      });
    }
  }

  function show(next) {
    const before = snapshot;
    snapshot = next;
    const name = shortened(next.name ?? id, 80);
    setText(title, name);
    document.title = `${name} · symenum studio`;
    if (before?.status !== next.status) {
      refill(status, statusLabel(next.status));
      showActions();
    }
    const readable = next.status !== "unreadable";
    setText(subtitle, readable ? subtitleOf(next) : "");
    for (const node of [progress.node, left, lawPlace]) node.hidden = !readable;
    filesCard.hidden = !readable && !next.files?.length;
    setText(message, next.message ?? "");
    message.hidden = !next.message;
    progress.show(next);
    showStates();
    showLaws();
    schedule.show(next.schedule ?? [], next.status === "running" ? next.move : null);
    refill(confidence, (next.confidence ?? []).map((text) => element("li", {}, text)));
    confidenceCard.hidden = !next.confidence?.length;
    const reasons = Object.entries(next.refused ?? {});
    refusedPart.hidden = !reasons.length;
    refill(refused, reasons.map(([reason, times]) => element("li", {}, `${reason}: ${count(times)}`)));
    const names = (next.files ?? []).join("\n");
    if (files.dataset.names !== names) {
      files.dataset.names = names;
      refill(files, next.files?.length ? downloads(id, next.files) : element("p", { class: "hint" }, "Files appear as the run goes on."));
    }
    showSettings(before, next);
    say(before, next);
  }

  function showSettings(before, next) {
    const text = JSON.stringify(next.settings ?? {});
    if (before && JSON.stringify(before.settings ?? {}) === text) return;
    refill(
      settings,
      Object.entries(next.settings ?? {})
        .filter(([, value]) => value !== null)
        .map(([key, value]) => element("div", {}, element("dt", {}, key), element("dd", {}, shortened(settingText(value), 300)))),
    );
  }

  function say(before, next) {
    if (next.status !== saidStatus) announce(`The run is ${next.status}.`);
    else if (next.status === "running" && before) {
      const best = (one) => one.front?.find((law) => law.index === one.selected)?.text;
      if (best(before) !== best(next)) announce(`New marked law: ${shortened(best(next) ?? "none", 200)}`);
    }
    saidStatus = next.status;
  }

  function showStates() {
    const isMotion = snapshot.kind === "motion";
    states.hidden = !isMotion;
    if (!isMotion) return;
    const names = (snapshot.states ?? []).map((state) => state.name);
    const current = parts().name;
    if (states.dataset.names !== names.join("\n")) {
      states.dataset.names = names.join("\n");
      refill(
        states,
        names.map((name) =>
          element("button", { type: "button", value: name, onclick: () => changeState(name) }, shortened(derivative(name, snapshot), 30)),
        ),
      );
    }
    for (const button of states.children) button.setAttribute("aria-pressed", String(button.value === current));
  }

  function changeState(name) {
    stateName = name;
    seenText = null;
    remember(null);
    showStates();
    showLaws();
  }

  function showActions() {
    if (["running", "waiting"].includes(snapshot.status)) {
      refill(actions, element("button", { type: "button", class: "stop", onclick: (event) => act(event, () => stopRun(id)) }, "Stop"));
    } else if (CAN_RESUME.has(snapshot.status) && snapshot.kind !== "motion") {
      const box = element("input", { type: "number", id: freshId("more"), min: 1, step: "any", value: MORE_TIME });
      refill(
        actions,
        element("label", { for: box.id, class: "more-time" }, "seconds more"),
        box,
        element("button", { type: "button", class: "primary", onclick: (event) => act(event, () => resumeRun(id, Number(box.value) || MORE_TIME)) }, "Resume"),
      );
    } else refill(actions);
  }

  async function act(event, action) {
    const button = event.currentTarget;
    button.disabled = true;
    problem.hidden = true;
    try {
      await action();
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
      button.disabled = false;
    }
  }

  const end = followRun(id, {
    onSnapshot: show,
    onConnection(there, error) {
      // A run that is not there is the run's problem; all else is the connection's.
      const missing = error && error.status >= 400 && error.status !== 401 && error.status !== 403;
      if (missing && !snapshot) {
        setText(title, "This run cannot be shown");
        setText(problem, error.message);
        problem.hidden = false;
        for (const node of [progress.node, left, lawPlace, filesCard]) node.hidden = true;
      } else onConnection(there, error);
    },
  });
  return () => {
    end();
    frontPlot.destroy();
    lawPanel.close();
  };
}

function subtitleOf({ kind, target, rows, columns, created }) {
  const names = (columns ?? []).map((column) => shortened(column.label ?? column.name, 24) + (column.unit ? ` (${shortened(column.unit, 16)})` : ""));
  const inputs = names.length > 6 ? `${counted(names.length, "column")}` : names.join(", ");
  const what = kind === "motion" ? `laws of motion of ${inputs}` : `${shortened(target ?? "", 40)} from ${inputs}`;
  return `${what} · ${counted(rows ?? 0, "row")} · ${moment(created)}`;
}

function settingText(value) {
  if (typeof value === "string") return value;
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(", ") : JSON.stringify(value);
}
