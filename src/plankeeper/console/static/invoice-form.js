// The form of an invoice: lines are added, copied, swapped and removed on the page, and its sums and warnings appear while
// somebody types. Without this script, each of these is a button that shows the form again.
const DELAY = 400; // milliseconds without typing before the invoice is checked
const KEYS = { KeyL: "add", KeyC: "duplicate", KeyW: "swap", KeyX: "remove" }; // with Alt

const form = document.querySelector("[data-invoice-form]");
const lines = form.querySelector("[data-lines]");
const blank = form.querySelector("[data-new-line]")?.content.firstElementChild;
let timer, latest = 0;

const field = (line, name) => line.querySelector(`[name="line-${line.dataset.line}-${name}"]`);
const inputs = (line) => [...line.querySelectorAll(".line-fields input, .line-fields textarea")];
const shownLines = () => [...lines.children].filter((each) => !each.classList.contains("removed"));
const nextNumber = () => Math.max(0, ...[...lines.children].map((each) => Number(each.dataset.line))) + 1;

function addLine(number = nextNumber(), after = lines.lastElementChild) {
  const line = blank.cloneNode(true), old = blank.dataset.line;
  line.dataset.line = number;
  line.firstElementChild.textContent = `Line ${number}`;
  for (const each of line.querySelectorAll("*")) {
    for (const name of ["id", "name", "for", "value", "aria-label"]) {
      const text = each.getAttribute(name);
      if (text?.includes(old)) each.setAttribute(name, text.replace(old, number));
    }
  }
  line.querySelector(".line-removed").firstChild.textContent = `Line ${number} is removed. `;
  if (after) after.after(line);
  else lines.append(line);
  return line;
}

function duplicate(line) {
  const copy = addLine();
  for (const each of line.querySelectorAll(".line-fields :is(input, select, textarea)")) {
    field(copy, each.name.replace(`line-${line.dataset.line}-`, "")).value = each.value;
  }
  inputs(copy)[0].focus();
}

function swap(line) {
  const [quantity, price] = [field(line, "quantity"), field(line, "unit_price")];
  [quantity.value, price.value] = [price.value, quantity.value];
}

function setRemoved(line, isRemoved) {
  field(line, "removed").value = isRemoved ? "1" : "";
  line.classList.toggle("removed", isRemoved);
}

function remove(line) {
  setRemoved(line, true);
  line.querySelector("[data-step=restore]").focus();
}

function restore(line) {
  setRemoved(line, false);
  inputs(line)[0].focus();
}

const STEPS = { add: () => inputs(addLine())[0].focus(), duplicate, swap, remove, restore, totals: () => {} };

function take(step, line) {
  if (!line && step !== "add" && step !== "totals") return;
  STEPS[step](line);
  form.dispatchEvent(new Event("input")); // leaving the page asks first
  check(0);
}

// The server checks what is typed, so that the warnings are those of the saved invoice.
function check(delay = DELAY) {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const number = ++latest, fields = new URLSearchParams(new FormData(form));
    fields.set("step", "totals");
    try {
      const response = await fetch(form.dataset.checkUrl, { method: "POST", body: fields });
      if (!response.ok || number !== latest) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      show(page.querySelector("[data-check]"));
      showRecords(page);
    } catch {
      // Offline: saving checks the invoice.
    }
  }, delay);
}

function show(found) {
  if (!found) return; // signed out: saving leads to the sign-in
  const shown = form.querySelector("[data-check]"), amounts = JSON.parse(found.dataset.amounts);
  if (shown.innerHTML !== found.innerHTML) shown.innerHTML = found.innerHTML;
  for (const each of form.querySelectorAll(".number")) each.placeholder = amounts[each.name] ?? "";
}

// A number or a name that only one record has becomes that record, once its field is left. Numbers tell records with one
// name apart.
function showRecords(page) {
  for (const shown of form.querySelectorAll("[data-picked]")) {
    const kind = shown.dataset.picked, own = form.elements[kind], id = form.elements[`${kind}_id`];
    const found = page.querySelector(`[name=${kind}]`), foundId = page.querySelector(`[name=${kind}_id]`);
    if (!found) return;
    const isTyping = document.activeElement === own;
    if (own.value && !id.value && foundId.value && !isTyping) [own.value, id.value] = [found.value, foundId.value];
    shown.textContent = id.value && id.value === foundId.value ? page.querySelector(`[data-picked=${kind}]`).textContent : "";
  }
}

// Enter goes on to the next field: after the last one of a line to the next line, or to a new one.
function goOn(input) {
  const line = input.closest("[data-line]");
  if (line) {
    const own = inputs(line), next = own[own.indexOf(input) + 1];
    if (next) return next.focus();
    const others = shownLines(), following = others[others.indexOf(line) + 1];
    return following ? inputs(following)[0].focus() : take("add");
  }
  const controls = [...form.querySelectorAll("input:not([type=hidden]), select, textarea")].filter((each) => each.offsetParent);
  (controls[controls.indexOf(input) + 1] ?? form.querySelector(".actions button")).focus();
}

if (lines) {
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-step]");
    if (!button) return;
    event.preventDefault();
    take(button.dataset.step, button.closest("[data-line]"));
  });
}
// Suggestions of support items have the price limit for the participant on the day of the service.
form.addEventListener("suggest", ({ target, detail }) => {
  const line = target.closest("[data-line]");
  if (!line) return;
  detail.on = field(line, "service_date_from").value || form.querySelector("[name=invoice_date]").value;
  detail.participant = form.querySelector("[name=participant_id]").value;
});
form.addEventListener("choose", ({ target, detail }) => {
  const line = target.closest("[data-line]");
  if (line && detail.price && !field(line, "unit_price").value) field(line, "unit_price").value = detail.price;
});
form.addEventListener("input", () => check());
form.addEventListener("change", () => check());
form.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  if (event.altKey && event.key === "Enter") {
    event.preventDefault();
    const next = form.querySelector("[name=next]");
    return next && form.requestSubmit(next);
  }
  if (event.altKey && !event.ctrlKey && !event.metaKey && lines && KEYS[event.code]) {
    event.preventDefault();
    return take(KEYS[event.code], event.target.closest("[data-line]"));
  }
  const isPlain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (event.key === "Enter" && isPlain && event.target.matches("input:not([type=radio], [type=checkbox])")) {
    event.preventDefault();
    goOn(event.target);
  }
});

// The form as it was before a session ended: drafts.js then fills its fields.
form.addEventListener("restore", ({ detail }) => {
  const numbers = new Set(detail.map(([name]) => /^line-(\d+)-/.exec(name)?.[1]).filter(Boolean));
  for (const number of numbers) if (!lines.querySelector(`[data-line="${number}"]`)) addLine(number);
  for (const line of [...lines.children]) {
    field(line, "removed").addEventListener("change", ({ target }) => line.classList.toggle("removed", target.value !== ""));
    if (!numbers.has(line.dataset.line) && !field(line, "id").value) line.remove();
  }
});

if (!document.querySelector(".summary, .note.warn")) form.querySelector("[name=provider]").focus();
