// Everything that the page asks of the server, and the stream of a run's snapshots.

const FIRST_RETRY = 500; // milliseconds until a lost stream is tried again; doubles up to the next
const LAST_RETRY = 8000;

/** The server's refusal: `message` is its sentence, `status` the HTTP status, 0 where no answer came. */
export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new ServerError("The studio's server does not answer. Is `symenum studio` still running?", 0);
  }
  let body = null;
  try {
    body = await answer.json();
  } catch {
    body = null;
  }
  if (!answer.ok) {
    const said = typeof body?.error === "string" ? body.error : `The server answered with status ${answer.status}.`;
    throw new ServerError(said, answer.status);
  }
  return body;
}

function post(path, value, options = {}) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value), ...options });
}

const part = encodeURIComponent;
const runPath = (id) => `/api/runs/${part(id)}`;

function lawPath(law, rest = "", query = {}) {
  const search = new URLSearchParams();
  if (law.state !== null && law.state !== undefined) search.set("state", law.state);
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined) search.set(name, value);
  const text = search.toString();
  return `${runPath(law.run)}/laws/${part(law.index)}${rest}${text ? `?${text}` : ""}`;
}

export const getInfo = () => ask("/api/info");
export const getRuns = () => ask("/api/runs");
export const getRun = (id) => ask(runPath(id));
export const startRun = (wish) => post("/api/runs", wish);
export const stopRun = (id) => post(`${runPath(id)}/stop`, {});
export const resumeRun = (id, maxTime) => post(`${runPath(id)}/resume`, { max_time: maxTime });
export const fileAddress = (id, name) => `${runPath(id)}/files/${part(name)}`;

/** Send a file's bytes and get its preview. */
export function sendTable(file) {
  return ask(`/api/tables?name=${part(file.name)}`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
}

/** A law is `{run, index, state}`; state is null but for laws of motion. */
export const getLaw = (law, signal) => ask(lawPath(law), { signal });
export const tryConstants = (law, constants, fit, signal) => post(lawPath(law, "/try"), { constants, fit }, { signal });

/** Values for the plots of a law, with other constants where some are given. */
export function getPlots(law, constants = null, signal = undefined, points = 2000) {
  return ask(lawPath(law, "/plots", { points, constants: constants === null ? null : constants.join(",") }), { signal });
}

/**
 * Follow a run: `onSnapshot(snapshot)` at once and after each change; `onConnection(true | false, error)` when the
 * stream is there or lost. The stream rests while the page is hidden, because a browser holds only six connections to
 * one server for all its tabs, and is taken up again after a restart of the server. Gives the function that ends it.
 */
export function followRun(id, { onSnapshot, onConnection }) {
  let stream = null;
  let wait = FIRST_RETRY;
  let timer = 0;
  let ended = false;

  function open() {
    clearTimeout(timer);
    if (ended || document.hidden || stream) return;
    stream = new EventSource(`${runPath(id)}/events`);
    stream.addEventListener("snapshot", (event) => {
      wait = FIRST_RETRY;
      onConnection(true, null);
      onSnapshot(JSON.parse(event.data));
    });
    stream.addEventListener("error", () => {
      close();
      retry();
    });
  }

  // An EventSource says nothing about why it failed; a plain request does, and its snapshot is as good.
  async function retry() {
    if (ended) return;
    try {
      const snapshot = await getRun(id);
      if (ended) return;
      onConnection(true, null);
      onSnapshot(snapshot);
    } catch (problem) {
      if (ended) return;
      onConnection(false, problem);
    }
    timer = setTimeout(open, wait);
    wait = Math.min(2 * wait, LAST_RETRY);
  }

  function close() {
    stream?.close();
    stream = null;
  }

  function onVisibility() {
    if (document.hidden) close();
    else open();
  }

  document.addEventListener("visibilitychange", onVisibility);
  open();
  if (document.hidden) retry();
  return () => {
    ended = true;
    clearTimeout(timer);
    close();
    document.removeEventListener("visibilitychange", onVisibility);
  };
}
