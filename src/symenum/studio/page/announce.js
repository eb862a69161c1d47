// Messages for screen readers, in the page's one live region.

import { setText } from "./dom.js";

/** Say something politely; the same words twice are said once. */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (region) setText(region, text);
}
