// The way through the page: the address after # says which view is shown.

import { setText } from "./dom.js";
import { showRun } from "./run.js";
import { showRuns } from "./runs.js";
import { showStart } from "./start.js";
import { startTheme } from "./theme.js";

const view = document.getElementById("view");
const banner = document.getElementById("connection");
let leave = () => {};
let first = true;

// The token of the first visit is in a cookie now; out of the address it cannot be copied or photographed by accident.
if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", `/${location.hash}`);

function onConnection(there, error) {
  banner.hidden = there;
  if (there) return;
  const denied = error?.status === 401 || error?.status === 403;
  setText(
    banner,
    denied
      ? "The server was started again and does not know this page. Open the address that `symenum studio` printed."
      : "The studio's server does not answer. A search that runs goes on by itself; this page tries again.",
  );
}

function go() {
  leave();
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [room, id] = path.split("/");
  const help = { onConnection };
  markCurrent("nav-runs", room === "");
  markCurrent("nav-new", room === "new");
  if (room === "runs" && id) leave = showRun(view, decodeURIComponent(id), new URLSearchParams(query), help);
  else if (room === "new") leave = showStart(view, help);
  else leave = showRuns(view, help);
  if (!first) {
    view.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  first = false;
}

function markCurrent(id, isCurrent) {
  const link = document.getElementById(id);
  if (isCurrent) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

startTheme(document.getElementById("theme"));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
addEventListener("hashchange", go);
go();
