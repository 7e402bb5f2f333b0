// Keys for people who work without a mouse. Every action is also a link, a button or a field of the page.
// search.js opens the palette on Ctrl-K.
const ROWS = "table.rows tbody tr, .events > li";
const PAGES = { h: "", q: "/review", p: "/participants", i: "/invoices", r: "/providers", a: "/activity", s: "/settings" };
const SEQUENCE_TIMEOUT = 1500; // milliseconds
const TYPING_PAUSE = 800; // milliseconds
const SETTING = "plankeeper-keys";

const dialog = document.querySelector("dialog[data-keys]");
const opener = document.querySelector("button[data-keys]");
const isOn = () => localStorage.getItem(SETTING) !== "off";
let previousKey = "";
let previousTime = 0;
let strayTime = 0; // of a letter that is no command: more letters so soon after it are a text without a field

function isTyping(target) {
  return target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]") !== null;
}

function focusSearch() {
  const field = document.querySelector("[data-search-field]");
  field?.select();
  return field !== null;
}

function currentRow() {
  return document.activeElement.closest(ROWS);
}

function moveTo(step) {
  const rows = [...document.querySelectorAll(ROWS)];
  const row = rows[rows.indexOf(currentRow()) + step] ?? (currentRow() ? null : rows[0]);
  row?.querySelector("td.lead a, a, summary")?.focus();
  row?.scrollIntoView({ block: "nearest" });
  return rows.length > 0;
}

function click(selector) {
  const found = currentRow()?.querySelector(selector) ?? document.querySelector(`main ${selector}`);
  found?.click();
  found?.closest("details[open]")?.querySelector("textarea, select, .panel button")?.focus();
  return found !== undefined && found !== null;
}

function goTo(key) {
  if (!(key in PAGES) || !document.querySelector(".main-menu")) return false;
  location.assign(`/console${PAGES[key]}`);
  return true;
}

function handle(key) {
  const isSequence = previousKey === "g" && Date.now() - previousTime < SEQUENCE_TIMEOUT;
  previousKey = key;
  previousTime = Date.now();
  if (isSequence && goTo(key)) return true;
  if (key === "/") return focusSearch();
  if (key === "j") return moveTo(1);
  if (key === "k") return moveTo(-1);
  if (key === "x") return currentRow() !== null && click("input[type=checkbox]");
  if (key === "?") return dialog.showModal() === undefined;
  return /^[a-z1-9]$/.test(key) && click(`[data-key="${key}"]`);
}

function closePopovers(except, selector = "details.popover[open]") {
  for (const each of document.querySelectorAll(selector)) {
    if (each.contains(except)) continue;
    const hadFocus = each.contains(document.activeElement);
    each.open = false;
    if (hadFocus) each.querySelector("summary").focus(); // an open form hides its button
  }
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  if (event.key === "Escape") return closePopovers(null, "details.popover[open], details.ignore[open]");
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key === "Enter") return event.target.closest("form[method=post]")?.requestSubmit();
  if (isCommand || !isOn() || dialog?.open || isTyping(event.target)) return;
  const isLetter = /^[a-z]$/i.test(event.key);
  if (event.repeat && isLetter && !"jk".includes(event.key)) return event.preventDefault();
  if (Date.now() - strayTime < TYPING_PAUSE) strayTime = Date.now();
  else if (handle(event.key)) event.preventDefault();
  else if (isLetter && event.key !== "g") strayTime = Date.now();
});
document.addEventListener("click", (event) => closePopovers(event.target));

if (opener) {
  const setting = dialog.querySelector("input");
  opener.hidden = false;
  opener.addEventListener("click", () => dialog.showModal());
  setting.checked = isOn();
  setting.addEventListener("change", () => localStorage.setItem(SETTING, setting.checked ? "on" : "off"));
}
