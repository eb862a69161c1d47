// A law to take home: its text in several languages with a button to copy each, and the run's files.

import { fileAddress } from "./api.js";
import { announce } from "./announce.js";
import { element, put } from "./dom.js";

const LANGUAGES = { latex: "LaTeX", sympy: "SymPy", python: "Python", numpy: "NumPy", c: "C", torch: "PyTorch" };
const FILES = {
  "report.html": "Report, one page with all plots",
  "model.json": "Model, to load with PSERegressor.load",
  "front.csv": "All laws of the front",
  "law.py": "The marked law as a Python module",
  "law.tex": "The marked law in LaTeX",
  "data.csv": "The data of the run",
  "law.txt": "The marked law as text",
  "laws.txt": "The laws of motion as text",
  "fronts.csv": "All laws of the fronts",
  "system.py": "The laws of motion as a Python module",
  "system.tex": "The laws of motion in LaTeX",
  "motion.json": "Laws of motion, to load with ODERegressor.load",
  "trajectories.png": "Measured and simulated motion",
  "log.txt": "What the search said",
  "run.json": "Problem and settings",
  "front.json": "The front, as the studio reads it",
  "events.jsonl": "Every step of the search",
};

export function copyPanel(host, law) {
  for (const [key, name] of Object.entries(LANGUAGES)) {
    const text = law.code[key];
    if (typeof text !== "string") continue;
    const button = element("button", { type: "button", onclick: () => copy(text, name, button) }, `Copy ${name}`);
    put(
      host,
      element(
        "section",
        { class: "code" },
        element("header", {}, element("h3", {}, name), button),
        element("pre", { tabindex: "0", role: "region", "aria-label": `The law in ${name}` }, element("code", {}, text)),
      ),
    );
  }
}

async function copy(text, name, button) {
  const done = await toClipboard(text);
  button.textContent = done ? "Copied ✓" : "Select and copy by hand";
  announce(done ? `${name} copied` : `The browser does not let the page copy; select the text and copy it`);
  setTimeout(() => (button.textContent = `Copy ${name}`), 2000);
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** Links to the files of a run. */
export function downloads(run, files) {
  return element(
    "ul",
    { class: "files" },
    files.map((name) =>
      element(
        "li",
        {},
        element("a", { href: fileAddress(run, name), ...(name.endsWith(".html") ? { target: "_blank", rel: "noopener" } : { download: name }) }, name),
        FILES[name] ? element("span", { class: "hint" }, ` ${FILES[name]}`) : null,
      ),
    ),
  );
}
