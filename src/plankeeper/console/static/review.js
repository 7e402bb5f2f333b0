// Keeps the lease of the invoice while its page is open, and lets the server draw the next document ahead of time.
// Without this script, the lease ends ten minutes after the page was opened.
const RENEWAL_INTERVAL = 180_000; // milliseconds
const { lease, prepare } = document.querySelector("script[data-lease]").dataset;
const csrf = document.querySelector('input[name="csrf"]').value;

const post = (path) => fetch(path, { method: "POST", body: new URLSearchParams({ csrf }), redirect: "manual" });

const timer = setInterval(async () => {
  if (document.visibilityState !== "visible") return;
  try {
    const response = await post(lease);
    if (response.ok || response.status >= 500) return;
    clearInterval(timer);
    if (response.status === 409) location.reload(); // a colleague looks at it by now
  } catch { /* The network is away: the next time tries again. */ }
}, RENEWAL_INTERVAL);

if (prepare) addEventListener("load", () => setTimeout(() => post(prepare).catch(() => {}), 300));
