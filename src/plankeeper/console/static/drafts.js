// A form that was sent after the session had expired is kept in this tab, and shown again when the same person has signed
// in. Only the person can send it. Without this script, the sign-in page says that the form wasn't saved.
const KEY = "plankeeper-draft";
const LIFETIME = 60 * 60 * 1000; // milliseconds
const NOT_KEPT = ["csrf", "password", "new_password", "code", "secret"];
const FORMS = "main form.card[method=post]";

const { account, planManager } = document.body.dataset; // of the session
const pathOf = (form) => new URL(form.action).pathname;
const save = (draft) => sessionStorage.setItem(KEY, JSON.stringify(draft));
const forget = () => sessionStorage.removeItem(KEY);

function show(form, fields) {
  form.dispatchEvent(new CustomEvent("restore", { detail: fields })); // a form with lines adds those that it lacks
  for (const control of form.elements) {
    const texts = fields.filter(([name]) => name === control.name).map(([, text]) => text);
    if (NOT_KEPT.includes(control.name) || control.type === "file") continue;
    if (["checkbox", "radio"].includes(control.type)) control.checked = texts.includes(control.value);
    else if (texts.length) [control.value] = texts;
    control.dispatchEvent(new Event("change", { bubbles: true }));
  }
  form.dispatchEvent(new Event("input")); // leaving the page asks first
  const note = document.createElement("p");
  note.className = "note warn";
  note.tabIndex = -1;
  note.setAttribute("role", "alert");
  note.textContent = "Your changes were kept. Nothing is saved yet: check the values, and save again.";
  form.before(note);
  note.focus();
}

const draft = JSON.parse(sessionStorage.getItem(KEY));
const unsaved = document.querySelector("[data-unsaved]");
if (draft && unsaved) {
  save({ ...draft, isUnsaved: true });
  unsaved.textContent = "You were signed out. Your changes were kept in this tab: sign in to continue with them.";
} else if (draft && account) {
  const form = [...document.querySelectorAll(FORMS)].find((each) => pathOf(each) === draft.path);
  const isCurrent = draft.isUnsaved && draft.account === account && Date.now() - draft.time < LIFETIME;
  if (isCurrent && draft.planManager === planManager && form) show(form, draft.fields);
  if (!isCurrent || form) forget();
}

if (account) {
  for (const form of document.querySelectorAll(FORMS)) {
    form.addEventListener("submit", () => {
      const fields = [...new FormData(form)].filter(([name, value]) => typeof value === "string" && !NOT_KEPT.includes(name));
      save({ account, planManager, path: pathOf(form), fields, time: Date.now() });
    });
  }
}
document.querySelector("form[action='/console/sign-out']")?.addEventListener("submit", forget);
