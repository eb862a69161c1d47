// Laws in rendered maths. The LaTeX is made by symenum; KaTeX runs without trust, so that no command in it can reach out.

import "./vendor/katex/katex.min.js";
import { element, shortened } from "./dom.js";

const LONGEST_LATEX = 3000; // characters: KaTeX makes an element of each sign, and a longer law is no help to the eye
const LONGEST_TEXT = 400;
const KEPT = 2000; // rendered laws that are held; a front of 200 laws changes many times in a run
const rendered = new Map();

/** A law as an element: maths if it can be rendered, else its text. `output` is KaTeX's: "mathml" needs no style sheet. */
export function maths(latex, text, { display = false, output = "htmlAndMathml" } = {}) {
  const key = `${display}${output}${latex}`;
  let made = rendered.get(key);
  if (made === undefined) {
    made = renderLaw(latex, text, display, output);
    if (rendered.size >= KEPT) rendered.clear();
    rendered.set(key, made);
  }
  return made.cloneNode(true);
}

function renderLaw(latex, text, display, output) {
  const plain = () => element("code", { class: "plain-law" }, shortened(text ?? latex ?? "", LONGEST_TEXT));
  if (!latex || latex.length > LONGEST_LATEX) return plain();
  const host = element("span", { class: display ? "maths display" : "maths" });
  try {
    // In a line of text fractions would be set too small to read.
    globalThis.katex.render(display ? latex : `\\displaystyle ${latex}`, host, {
      displayMode: display,
      output,
      trust: false,
      strict: "ignore",
      throwOnError: true,
      maxSize: 20,
      maxExpand: 100,
    });
  } catch {
    return plain();
  }
  return host;
}
