// Updates the progress of the check of all open invoices while it runs. Without this script, a link does.
const PAGE = "/console/checks"; // also when this page has the errors of its form
const DELAY = 2000; // milliseconds

async function update() {
  const shown = document.getElementById("progress");
  if (!("busy" in shown.dataset)) return;
  try {
    const response = await fetch(PAGE, { redirect: "manual" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const current = page.getElementById("progress");
    if (!response.ok || !current) return; // signed out
    if (!shown.contains(document.activeElement)) shown.replaceWith(document.adoptNode(current));
  } catch { /* The network is away: try again. */ }
  setTimeout(update, DELAY);
}

setTimeout(update, DELAY);
