// Measures how the page of an invoice is looked at, and tells the server: docs/invoice-view-sessions.md says what.
const BEAT = 15_000, IDLE = 60_000; // milliseconds
const path = document.querySelector("script[data-begin]").dataset.begin;
const csrf = document.querySelector('input[name="csrf"]').value;

let session = null; // the id of the one that is open
let isBeginning = false;
let isLeft = false; // the page is closed, or in the browser's memory of where one was
let isOver = false; // the server wants to hear no more: signed out, another role, the invoice is gone
let measured, at, input, isSeen, isFocused;

function look() {
  isSeen = document.visibilityState === "visible";
  isFocused = document.hasFocus();
}

function reset() {
  measured = { active_ms: 0, engaged_ms: 0, idle_count: 0 };
  at = performance.now();
  input = -Infinity;
  look();
}

// Adds the time since it was last asked, in the state that the page was in all the while.
function settle() {
  const now = performance.now(), idle = input + IDLE;
  if (isSeen) measured.active_ms += now - at;
  if (isSeen && isFocused && at < idle) {
    measured.engaged_ms += Math.min(now, idle) - at;
    if (idle <= now) measured.idle_count += 1;
  }
  at = now;
  look();
}

function form(values) {
  const whole = Object.entries(values).map(([name, value]) => [name, Math.floor(value)]);
  return new URLSearchParams([...whole, ["csrf", csrf]]);
}

function post(to, values) {
  return fetch(to, { method: "POST", body: form(values), redirect: "manual" });
}

// A page that nobody sees begins nothing: a tab opened behind others, one that a browser makes ahead of time.
async function begin() {
  if (session || isBeginning || isLeft || isOver) return;
  if (document.visibilityState !== "visible" || document.prerendering) return;
  isBeginning = true;
  reset();
  try {
    const answer = await post(path, {});
    if (answer.ok) session = (await answer.json()).id;
    else isOver = answer.status < 500;
  } catch { /* The network is away: the next beat tries again. */ }
  isBeginning = false;
}

async function beat() {
  settle();
  if (!session) return begin();
  const told = session;
  try {
    const answer = await post(`/console/view-sessions/${told}/heartbeat`, measured);
    if (answer.ok || answer.status >= 500 || told !== session) return;
    session = null;
    isOver = answer.status !== 409;
    await begin(); // 409: it ended for want of a heartbeat
  } catch { /* likewise */ }
}

function end() {
  isLeft = true;
  if (!session) return;
  settle();
  navigator.sendBeacon(`/console/view-sessions/${session}/end`, form(measured));
  session = null;
}

function noteInput() {
  settle();
  input = at;
}

for (const name of ["pointerdown", "pointermove", "keydown", "wheel", "scroll", "touchstart", "touchmove"]) {
  addEventListener(name, noteInput, { passive: true, capture: true });
}
for (const name of ["focus", "blur"]) addEventListener(name, settle);
for (const name of ["visibilitychange", "prerenderingchange"]) document.addEventListener(name, beat);
addEventListener("pagehide", end);
// A page that comes back as it was left begins anew: the time that it was away is not its.
addEventListener("pageshow", () => { isLeft = false; begin(); });
setInterval(beat, BEAT);
reset();
