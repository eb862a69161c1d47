// Light and dark: what the system prefers, unless the switch says otherwise. Plots are told when the colours change.

const KEY = "symenum-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const NAMES = { auto: "Auto", light: "Light", dark: "Dark" };
const listeners = new Set();

let chosen = "auto";
let probe = null;

/** Set the theme that was chosen last, and make the button the switch. */
export function startTheme(button) {
  try {
    chosen = localStorage.getItem(KEY) ?? "auto";
  } catch {
    chosen = "auto"; // storage is closed to this page: the choice lasts as long as the page
  }
  if (!(chosen in NEXT)) chosen = "auto";
  show(button);
  button.addEventListener("click", () => {
    chosen = NEXT[chosen];
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // as above
    }
    show(button);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellListeners);
}

function show(button) {
  document.documentElement.dataset.theme = chosen;
  button.textContent = `${chosen === "dark" ? "☾" : chosen === "light" ? "☀" : "◐"} ${NAMES[chosen]}`;
  button.setAttribute("aria-label", `Colours: ${NAMES[chosen]}. Change to ${NAMES[NEXT[chosen]]}`);
  tellListeners();
}

function tellListeners() {
  for (const listener of listeners) listener();
}

/** Call `listener` after each change of colours; gives the function that ends this. */
export function onThemeChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The colour of a custom property such as "--accent" as the canvas understands it, as seen from `host`. */
export function colour(name, host = document.body) {
  probe ??= document.createElement("i");
  probe.hidden = true;
  host.append(probe);
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
