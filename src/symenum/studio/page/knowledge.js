// What one knows before the search: constants by name, guesses, columns a law must have, limits, and errors of the data.

import { element, freshId, shortened } from "./dom.js";

const SANITY = [["on", "no"], ["allow_poles", "poles only"], ["off", "anything"]];
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/**
 * Fields for the knowledge about `columns`, names of the table's columns of numbers. Gives {node, parameters()}:
 * `parameters()` are those of PSERegressor and throws an Error that says what is wrong.
 */
export function knowledgeFields(columns) {
  const guesses = element("textarea", { id: freshId("guesses"), rows: 2, spellcheck: "false", placeholder: "a*x**2 + b" });
  const named = text("g = 9.81, c = 299792458");
  const fitted = element("input", { type: "checkbox", checked: true });
  const nested = text("sin in sin, exp in exp");
  const inside = text("sin: 5, exp: 3");
  const depth = element("input", { type: "number", id: freshId("depth"), min: 1, step: 1, placeholder: "any" });
  const required = columnChoice(columns, "any");
  const error = columnChoice(columns, "not known");
  const weights = columnChoice(columns, "all rows alike");
  const sanity = element("select", { id: freshId("sanity") }, SANITY.map(([value, label]) => element("option", { value }, label)));

  function constants() {
    const found = {};
    for (const piece of pieces(named.value)) {
      const [name, value] = piece.split("=").map((side) => side.trim());
      if (!name || value === undefined || !NUMBER.test(value)) {
        throw new Error(`Constants with a name are written like "g = 9.81", not "${shortened(piece, 40)}".`);
      }
      found[name] = Number(value);
    }
    return found;
  }

  function insideOf() {
    const found = {};
    for (const piece of pieces(inside.value)) {
      const [name, value] = piece.split(":").map((side) => side.trim());
      if (!name || !/^\d+$/.test(value ?? "")) throw new Error(`Sizes inside operators are written like "sin: 5", not "${shortened(piece, 40)}".`);
      found[name] = Number(value);
    }
    return found;
  }

  function nestedIn() {
    const found = {};
    for (const piece of pieces(nested.value)) {
      const [inner, outer, more] = piece.split(/\s+in\s+/);
      if (!inner || !outer || more) throw new Error(`What may not stand inside is written like "sin in sin", not "${shortened(piece, 40)}".`);
      found[outer] = { ...found[outer], [inner]: 0 };
    }
    return found;
  }

  function parameters() {
    const found = {};
    const put = (name, value) => Object.keys(value).length && (found[name] = value);
    put("guesses", guesses.value.split("\n").map((line) => line.trim()).filter(Boolean));
    put("constants", constants());
    put("constraints", insideOf());
    put("nested_constraints", nestedIn());
    put("required_variables", required.names());
    if (!fitted.checked) {
      if (found.constants) throw new Error("Constants with a name need fitted constants: tick that laws may hold them.");
      found.constants = false;
    }
    if (depth.value) found.max_depth = Number(depth.value);
    const [errors] = error.names();
    if (errors !== undefined) found.y_error = errors;
    const [weight] = weights.names();
    if (weight !== undefined) found.weights = weight;
    if (sanity.value !== SANITY[0][0]) found.sanity = sanity.value;
    return found;
  }

  return {
    parameters,
    node: element(
      "details",
      {},
      element("summary", {}, "What you know"),
      element(
        "div",
        { class: "columns wide-columns" },
        field("Formulas to begin with, one a line", guesses, "Names that are no columns are fitted"),
        field("Constants with a name", named),
        field("A column that every law must have", required.node),
        field("Column with the target's errors", error.node, "Standard errors, in the target's unit"),
        field("Column with weights", weights.node),
        field("Not inside one another", nested),
        field("Largest size inside an operator", inside),
        field("Operators inside one another, at most", depth),
        field("Laws that no scientist would print", sanity, "Poles inside the data, and the like"),
      ),
      element("label", { class: "box" }, fitted, element("span", {}, "Laws may hold fitted constants")),
    ),
  };
}

function text(placeholder) {
  return element("input", { type: "text", id: freshId("known"), placeholder, autocomplete: "off", spellcheck: "false" });
}

// Values are places in the list, so that a name may be anything.
function columnChoice(columns, none) {
  const node = element(
    "select",
    { id: freshId("column") },
    element("option", { value: "" }, none),
    columns.map((name, i) => element("option", { value: i }, shortened(name, 60))),
  );
  return { node, names: () => (node.value === "" ? [] : [columns[Number(node.value)]]) };
}

function pieces(value) {
  return value.split(/[,;\n]/).map((piece) => piece.trim()).filter(Boolean);
}

function field(label, control, hint = null) {
  return element("p", { class: "field" }, element("label", { for: control.id }, label), control, hint ? element("span", { class: "hint" }, hint) : null);
}
