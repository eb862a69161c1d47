// A new search: give a table, look at its columns, say what is sought, start.

import { getInfo, sendTable, startRun } from "./api.js";
import { announce } from "./announce.js";
import { element, freshId, refill, setText, shortened } from "./dom.js";
import { count, counted, number } from "./format.js";
import { knowledgeFields } from "./knowledge.js";

const KINDS = { number: "number", date: "date", text: "text", constant: "constant", empty: "empty" };
const MOST_SHOWN = 60; // columns of the preview, and inputs of the list; the search field finds the others
const LOSSES = ["mse", "mae", "huber", "log_cosh", "relative"];
const SELECTIONS = ["evidence", "best", "accuracy", "reward", "mdl", "kfold"];
const TIMES = [[10, "10 s"], [60, "1 min"], [300, "5 min"], [1800, "30 min"]];

/** Fill `view`. Gives the function that leaves the view. */
export function showStart(view, { onConnection }) {
  document.title = "New search · symenum studio";
  let ended = false;
  const problem = element("p", { class: "problem", role: "alert", hidden: true });
  const rest = element("div");
  const input = element("input", { type: "file", id: freshId("file"), class: "unseen", accept: ".csv,.tsv,.txt,.dat,.parquet,.xlsx,.xls,text/csv" });
  const drop = element(
    "label",
    { class: "drop", for: input.id },
    element("strong", {}, "Drop a table here"),
    element("span", {}, "or choose a file: CSV, TSV, text, Parquet or Excel"),
  );
  refill(
    view,
    element(
      "div",
      { class: "start" },
      element("h1", {}, "New search"),
      element("div", { class: "drop-place" }, input, drop),
      problem,
      rest,
    ),
  );
  const infoAsked = getInfo();
  infoAsked.then(() => onConnection(true, null), (error) => onConnection(false, error));

  input.addEventListener("change", () => input.files[0] && take(input.files[0]));
  for (const name of ["dragenter", "dragover"]) {
    view.addEventListener(name, onDrag);
  }
  view.addEventListener("dragleave", onDragEnd);
  view.addEventListener("drop", onDrop);

  function onDrag(event) {
    event.preventDefault();
    drop.classList.add("over");
  }
  function onDragEnd() {
    drop.classList.remove("over");
  }
  function onDrop(event) {
    event.preventDefault();
    onDragEnd();
    const [file] = event.dataTransfer?.files ?? [];
    if (file) take(file);
  }

  function fail(text) {
    setText(problem, text);
    problem.hidden = !text;
  }

  async function take(file) {
    fail("");
    refill(rest, element("p", { class: "hint" }, `Reading ${shortened(file.name, 80)} …`));
    try {
      const info = await infoAsked;
      const most = info.limits?.upload_bytes;
      if (most && file.size > most) {
        throw new Error(`The file has ${number(file.size / 1e6, 3)} MB and the studio takes ${number(most / 1e6, 3)} MB. Use \`symenum fit\` for it, or give fewer rows.`);
      }
      const table = await sendTable(file);
      if (ended) return;
      setText(drop.querySelector("strong"), shortened(table.name, 80));
      setText(drop.querySelector("span"), `${counted(table.rows, "row")}, ${counted(table.columns.length, "column")} · drop another to replace it`);
      drop.classList.add("full");
      refill(rest, ...formFor(table, info, fail));
      announce(`${shortened(table.name, 80)} is read: ${counted(table.rows, "row")}, ${counted(table.columns.length, "column")}.`);
    } catch (error) {
      if (ended) return;
      refill(rest);
      fail(error.message);
    }
  }

  return () => {
    ended = true;
    for (const name of ["dragenter", "dragover"]) view.removeEventListener(name, onDrag);
    view.removeEventListener("dragleave", onDragEnd);
    view.removeEventListener("drop", onDrop);
  };
}

function usable(column) {
  return column.kind === "number" || column.kind === "date";
}

function formFor(table, info, fail) {
  const form = { kind: "law", target: table.suggested_target, inputs: new Set(), texts: new Set(), controls: new Set(), time: null };
  const numeric = table.columns.filter(usable).map((column) => column.name);
  numeric.filter((name) => name !== form.target).forEach((name) => form.inputs.add(name));
  const extra = further();
  const known = knowledgeFields(numeric);
  const motion = motionSettings(table.columns);
  const operators = operatorChoice(info);
  const time = timeChoice(info.defaults?.max_time ?? 60);
  const what = element("div");
  const name = element("input", { type: "text", id: freshId("name"), maxlength: 120, autocomplete: "off" });
  name.value = shortened(table.name.replace(/\.[A-Za-z0-9]+$/, ""), 80);
  const start = element("button", { type: "submit", class: "primary large" }, "Start the search");

  function drawWhat() {
    const isLaw = form.kind === "law";
    refill(what, isLaw ? lawColumns(table, form) : motionColumns(table, form));
    known.node.hidden = !isLaw;
    extra.ofLaws.hidden = !isLaw;
    motion.node.hidden = isLaw;
  }
  drawWhat();

  const node = element(
    "form",
    { novalidate: true, onsubmit: send },
    element(
      "section",
      { class: "card" },
      element("h2", {}, "What is sought"),
      radios("Kind", [["law", "A law: one column from others"], ["motion", "Laws of motion: how columns change in time"]], form.kind, (kind) => {
        form.kind = kind;
        drawWhat();
      }),
      what,
    ),
    element(
      "section",
      { class: "card" },
      element("h2", {}, "How"),
      operators.node,
      time.node,
      element("p", { class: "field" }, element("label", { for: name.id }, "Name of the run"), name),
      motion.node,
      known.node,
      extra.node,
    ),
    element("div", { class: "buttons" }, start),
  );

  async function send(event) {
    event.preventDefault();
    fail("");
    const chosen = operators.value();
    const wish = {
      table: table.table,
      name: name.value.trim() || undefined,
      kind: form.kind,
      inputs: form.kind === "law" ? [...form.inputs, ...form.texts] : [...form.controls],
      operators: chosen,
      max_time: time.value(),
    };
    try {
      const own = form.kind === "law" ? { ...extra.lawParameters(), ...known.parameters() } : motion.parameters();
      wish.parameters = { ...extra.parameters(), ...own };
      if (form.kind === "law" && form.texts.size) wish.parameters.one_hot = [...form.texts];
    } catch (error) {
      return fail(error.message);
    }
    const seed = extra.seed();
    if (seed !== null) wish.random_state = seed;
    if (form.kind === "law") wish.target = form.target;
    else {
      wish.targets = [...form.inputs].filter((name) => !form.controls.has(name));
      wish.time = form.time ?? undefined;
    }
    if (Array.isArray(chosen) && !chosen.length) return fail("Choose at least one operator.");
    if (!form.inputs.size && !(form.kind === "law" && form.texts.size)) return fail(form.kind === "law" ? "Choose at least one column to explain it with." : "Choose at least one column that moves.");
    if (!(wish.max_time > 0)) return fail("The time must be a number of seconds above 0.");
    start.disabled = true;
    try {
      const { id } = await startRun(wish);
      location.hash = `#/runs/${encodeURIComponent(id)}`;
    } catch (error) {
      fail(error.message);
      start.disabled = false;
    }
    return undefined;
  }
  return [preview(table), node];
}

function preview(table) {
  const shown = table.columns.slice(0, MOST_SHOWN);
  const warnings = [...(table.warnings ?? [])];
  if (table.columns.length > MOST_SHOWN) warnings.push(`The preview shows the first ${MOST_SHOWN} of ${count(table.columns.length)} columns.`);
  return element(
    "section",
    { class: "card", "aria-label": "Preview of the table" },
    element("h2", {}, "The table"),
    warnings.length ? element("ul", { class: "warnings" }, warnings.map((text) => element("li", {}, text))) : null,
    element(
      "div",
      { class: "preview", tabindex: "0", role: "region", "aria-label": "First rows" },
      element(
        "table",
        {},
        element("caption", { class: "unseen" }, "The first rows of the table"),
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            shown.map((column) =>
              element(
                "th",
                { scope: "col", title: shortened(column.name, 300) },
                element("span", { class: "column-name" }, shortened(column.name, 40)),
                element("span", { class: `kind kind-${column.kind}` }, KINDS[column.kind] ?? column.kind),
                usable(column) && column.min !== null && column.min !== undefined
                  ? element("span", { class: "range" }, `${cell(column.min)} … ${cell(column.max)}`)
                  : null,
                column.missing ? element("span", { class: "range" }, `${count(column.missing)} missing`) : null,
                column.warning ? element("span", { class: "column-warning" }, column.warning) : null,
              ),
            ),
          ),
        ),
        element(
          "tbody",
          {},
          table.preview.slice(0, 8).map((row) => element("tr", {}, row.slice(0, MOST_SHOWN).map((text) => element("td", {}, shortened(text ?? "", 40))))),
        ),
      ),
    ),
  );
}

function cell(value) {
  return typeof value === "number" ? number(value, 3) : shortened(value, 20);
}

function lawColumns(table, form) {
  const id = freshId("target");
  const names = table.columns.filter(usable).map((column) => column.name);
  const options = table.columns
    .map((column, i) => ({ column, i }))
    .filter(({ column }) => usable(column))
    .map(({ column, i }) => element("option", { value: i, selected: column.name === form.target }, shortened(column.name, 80)));
  const select = element("select", { id }, options);
  const list = element("div");
  const draw = () => refill(list, columnList("Explain it with", names.filter((name) => name !== form.target), form.inputs));
  select.addEventListener("change", () => {
    form.inputs.add(form.target);
    form.target = table.columns[Number(select.value)].name;
    form.inputs.delete(form.target);
    draw();
  });
  if (!form.target || !names.includes(form.target)) form.target = names[names.length - 1] ?? null;
  select.value = String(table.columns.findIndex((column) => column.name === form.target));
  form.inputs.delete(form.target);
  draw();
  const texts = table.columns.filter((column) => column.one_hot).map((column) => column.name);
  return [
    element("p", { class: "field" }, element("label", { for: id }, "Column to explain"), select),
    list,
    texts.length ? columnList("Texts as columns of 0 and 1", texts, form.texts) : null,
  ];
}

function motionColumns(table, form) {
  const id = freshId("time");
  const names = table.columns.filter(usable).map((column) => column.name);
  const looksLikeTime = names.find((name) => /^(t|time|zeit|seconds?|date)\b/i.test(name)) ?? names[0] ?? null;
  form.time ??= looksLikeTime;
  const select = element(
    "select",
    { id },
    table.columns.map((column, i) => usable(column) && element("option", { value: i }, shortened(column.name, 80))),
  );
  select.value = String(table.columns.findIndex((column) => column.name === form.time));
  const list = element("div");
  if (form.target) form.inputs.add(form.target);
  form.inputs.delete(form.time);
  const others = () => names.filter((name) => name !== form.time);
  const draw = () =>
    refill(
      list,
      columnList("Columns that move (states)", others(), form.inputs),
      element("details", {}, element("summary", {}, "Columns that act from outside"), columnList("Controls", others(), form.controls)),
    );
  select.addEventListener("change", () => {
    form.inputs.add(form.time);
    form.time = table.columns[Number(select.value)].name;
    form.inputs.delete(form.time);
    draw();
  });
  draw();
  return [element("p", { class: "field" }, element("label", { for: id }, "Column of time"), select), list];
}

// Boxes to tick; of many columns only those are shown whose names hold what is typed into the field.
function columnList(label, names, chosen) {
  const boxes = element("div", { class: "boxes" });
  const note = element("span", { class: "hint" });
  const field = element("input", { type: "search", placeholder: "find a column", "aria-label": "Find a column" });
  function draw() {
    const wanted = field.value.trim().toLowerCase();
    const found = names.filter((name) => name.toLowerCase().includes(wanted));
    refill(
      boxes,
      found.slice(0, MOST_SHOWN).map((name) =>
        element(
          "label",
          { class: "box", title: name.length > 40 ? shortened(name, 300) : null },
          element("input", {
            type: "checkbox",
            checked: chosen.has(name),
            onchange: (event) => {
              if (event.target.checked) chosen.add(name);
              else chosen.delete(name);
              tell();
            },
          }),
          element("span", {}, shortened(name, 40)),
        ),
      ),
    );
    tell(found.length);
  }
  let lastFound = names.length;
  function tell(found = lastFound) {
    lastFound = found;
    const hidden = found > MOST_SHOWN ? `, ${count(MOST_SHOWN)} of ${count(found)} shown` : "";
    setText(note, `${count(names.filter((name) => chosen.has(name)).length)} of ${count(names.length)} chosen${hidden}`);
  }
  const setAll = (on) => {
    for (const name of names) on ? chosen.add(name) : chosen.delete(name);
    draw();
  };
  field.addEventListener("input", draw);
  draw();
  return element(
    "fieldset",
    {},
    element("legend", {}, label),
    element(
      "div",
      { class: "list-tools" },
      names.length > 12 ? field : null,
      element("button", { type: "button", class: "quiet", onclick: () => setAll(true) }, "all"),
      element("button", { type: "button", class: "quiet", onclick: () => setAll(false) }, "none"),
      note,
    ),
    boxes,
  );
}

function radios(label, choices, current, onChange) {
  const group = freshId("choice");
  return element(
    "fieldset",
    { class: "plain" },
    element("legend", { class: "unseen" }, label),
    choices.map(([value, text]) =>
      element(
        "label",
        { class: "box" },
        element("input", { type: "radio", name: group, value, checked: value === current, onchange: () => onChange(value) }),
        element("span", {}, text),
      ),
    ),
  );
}

function operatorChoice(info) {
  const sets = info.operator_sets ?? {};
  const first = typeof info.defaults?.operators === "string" ? info.defaults.operators : Object.keys(sets)[0];
  const id = freshId("operators");
  const select = element(
    "select",
    { id },
    Object.keys(sets).map((name) => element("option", { value: name }, name)),
    element("option", { value: "" }, "my own choice"),
  );
  select.value = first ?? "";
  const boxes = info.operators.map((operator) => {
    const box = element("input", { type: "checkbox", value: operator.name, onchange: () => (select.value = sameSet() ?? "") });
    return { operator, box };
  });
  const chosen = () => boxes.filter(({ box }) => box.checked).map(({ operator }) => operator.name);

  function sameSet() {
    const now = [...chosen()].sort().join("\n");
    return Object.keys(sets).find((name) => [...sets[name]].sort().join("\n") === now);
  }
  function showSet() {
    if (!select.value) return;
    const members = new Set(sets[select.value]);
    for (const { operator, box } of boxes) box.checked = members.has(operator.name);
  }
  select.addEventListener("change", showSet);
  showSet();
  return {
    value: () => select.value || chosen(),
    node: element(
      "fieldset",
      {},
      element("legend", {}, "Operators"),
      element("p", { class: "field inline" }, element("label", { for: id }, "Set"), select),
      element(
        "div",
        { class: "boxes operators" },
        boxes.map(({ operator, box }) => element("label", { class: "box" }, box, element("span", {}, operator.text ?? operator.name))),
      ),
    ),
  };
}

function timeChoice(initial) {
  const id = freshId("seconds");
  const box = element("input", { type: "number", id, min: 1, step: "any", value: initial });
  return {
    value: () => Number(box.value),
    node: element(
      "div",
      { class: "field" },
      element("label", { for: id }, "Time in seconds"),
      element(
        "div",
        { class: "time" },
        box,
        TIMES.map(([value, text]) => element("button", { type: "button", class: "quiet", onclick: () => (box.value = value) }, text)),
      ),
    ),
  };
}

function further() {
  const complexity = element("input", { type: "number", id: freshId("complexity"), min: 1, step: 1, placeholder: "50" });
  const loss = element("select", { id: freshId("loss") }, LOSSES.map((name) => element("option", { value: name }, name)));
  const selection = element("select", { id: freshId("selection") }, SELECTIONS.map((name) => element("option", { value: name }, name)));
  const seed = element("input", { type: "number", id: freshId("seed"), min: 0, step: 1, placeholder: "none" });
  const ofLaws = element("div", {}, field("Loss", loss), field("How the law is marked", selection));
  return {
    parameters() {
      const found = {};
      if (complexity.value) found.max_complexity = Number(complexity.value);
      return found;
    },
    lawParameters() {
      const found = {};
      if (loss.value !== LOSSES[0]) found.loss = loss.value;
      if (selection.value !== SELECTIONS[0]) found.model_selection = selection.value;
      return found;
    },
    ofLaws,
    seed: () => (seed.value === "" ? null : Number(seed.value)),
    node: element(
      "details",
      {},
      element("summary", {}, "Further settings"),
      element(
        "div",
        { class: "columns" },
        field("Largest size of a law", complexity),
        ofLaws,
        field("Random seed", seed, "For results that repeat"),
      ),
    ),
  };
}

function field(label, control, hint = null) {
  return element("p", { class: "field" }, element("label", { for: control.id }, label), control, hint ? element("span", { class: "hint" }, hint) : null);
}

function motionSettings(columns) {
  const order = element(
    "select",
    { id: freshId("order") },
    element("option", { value: "1" }, "first: the speed of a column"),
    element("option", { value: "2" }, "second: its acceleration"),
  );
  const trajectory = element(
    "select",
    { id: freshId("trajectory") },
    element("option", { value: "" }, "all rows are one motion"),
    columns.map((column, i) => element("option", { value: i }, shortened(column.name, 60))),
  );
  return {
    parameters() {
      const found = { order: Number(order.value) };
      if (trajectory.value !== "") found.trajectory = columns[Number(trajectory.value)].name;
      return found;
    },
    node: element("div", { class: "columns", hidden: true }, field("Order of the laws", order), field("Column that tells motions apart", trajectory)),
  };
}
