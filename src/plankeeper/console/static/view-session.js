// Measures how long and how actively a person views an invoice, and reports it: docs/invoice-view-sessions.md.
const HEARTBEAT_INTERVAL = 15_000, IDLE_TIMEOUT = 60_000; // milliseconds
const path = document.querySelector("script[data-begin]").dataset.begin;
const csrf = document.querySelector('input[name="csrf"]').value;

let session = null; // the id of the open session
let isStarting = false;
let isClosed = false; // the page is closed, or in the back/forward cache
let isOver = false; // the server rejects further reports: signed out, role changed, invoice deleted
let report, lastUpdate, lastInput, isVisible, isFocused;
let pointer; // its last position since the page appeared, as text

function updateVisibility() {
  isVisible = document.visibilityState === "visible";
  isFocused = document.hasFocus();
  if (!isVisible) pointer = null; // it may be in another place when the page appears again
}

function reset() {
  report = { active_ms: 0, engaged_ms: 0, idle_count: 0 };
  lastUpdate = performance.now();
  lastInput = -Infinity;
  pointer = null;
  updateVisibility();
}

// Adds the time since the last call. The page was in the same state all that time.
function addElapsedTime() {
  const now = performance.now(), idle = lastInput + IDLE_TIMEOUT;
  if (isVisible) report.active_ms += now - lastUpdate;
  if (isVisible && isFocused && lastUpdate < idle) {
    report.engaged_ms += Math.min(now, idle) - lastUpdate;
    if (idle <= now) report.idle_count += 1;
  }
  lastUpdate = now;
  updateVisibility();
}

function formData(values) {
  const whole = Object.entries(values).map(([name, value]) => [name, Math.floor(value)]);
  return new URLSearchParams([...whole, ["csrf", csrf]]);
}

function post(to, values) {
  return fetch(to, { method: "POST", body: formData(values), redirect: "manual" });
}

// A hidden page starts no session: a background tab, or a page that the browser prerenders.
async function start() {
  if (session || isStarting || isClosed || isOver) return;
  if (document.visibilityState !== "visible" || document.prerendering) return;
  isStarting = true;
  reset();
  try {
    const response = await post(path, {});
    if (response.ok) session = (await response.json()).id;
    else isOver = response.status < 500;
  } catch { /* The network is away: the next beat tries again. */ }
  isStarting = false;
}

async function sendHeartbeat() {
  addElapsedTime();
  if (!session) return start();
  const sessionId = session;
  try {
    const response = await post(`/console/view-sessions/${sessionId}/heartbeat`, report);
    if (response.ok || response.status >= 500 || sessionId !== session) return;
    session = null;
    isOver = response.status !== 409;
    await start(); // 409: the session timed out without a heartbeat
  } catch { /* likewise */ }
}

function end() {
  isClosed = true;
  if (!session) return;
  addElapsedTime();
  navigator.sendBeacon(`/console/view-sessions/${session}/end`, formData(report));
  session = null;
}

function recordInput() {
  addElapsedTime();
  lastInput = lastUpdate;
}

// Browsers also report a pointer that rests where a page appears, or where its content changes. Nobody moved it then.
function recordPointerMove(event) {
  const position = `${event.clientX} ${event.clientY}`, isMoved = pointer !== null && position !== pointer;
  pointer = position;
  if (isMoved) recordInput();
}

const listening = { passive: true, capture: true };
for (const name of ["pointerdown", "keydown", "wheel", "scroll", "touchstart", "touchmove"]) {
  addEventListener(name, recordInput, listening);
}
addEventListener("pointermove", recordPointerMove, listening);
for (const name of ["focus", "blur"]) addEventListener(name, addElapsedTime);
for (const name of ["visibilitychange", "prerenderingchange"]) document.addEventListener(name, sendHeartbeat);
addEventListener("pagehide", end);
// A page restored from the back/forward cache starts a new session: time away doesn't count.
addEventListener("pageshow", () => { isClosed = false; start(); });
setInterval(sendHeartbeat, HEARTBEAT_INTERVAL);
reset();
