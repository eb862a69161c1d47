// Making elements. Text always becomes a text node, so that names from data are shown and never read as markup.

/**
 * An element with attributes and children. An attribute whose value is a function and whose name begins with "on" is a
 * listener; null, undefined and false leave an attribute or a child out; arrays of children are flattened.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") made[name] = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  put(made, children);
  return made;
}

/** Append children: nodes, text, and arrays of these. */
export function put(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return parent;
}

/** Take all children out and put these in. */
export function refill(parent, ...children) {
  parent.replaceChildren();
  return put(parent, ...children);
}

/** Set the text only where it differs, so that screen readers and selections are left alone. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let counter = 0;

/** A fresh id, for labels. */
export function freshId(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** Text of at most so many characters: names of columns may be thousands of characters long. */
export function shortened(text, most = 60) {
  const whole = String(text);
  return whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
}
