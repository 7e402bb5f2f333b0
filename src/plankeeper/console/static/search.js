// Suggestions below the search of every page and below fields that take a record, and the palette on Ctrl-K. Without JavaScript,
// the search is a form, and such a field takes a name whose candidates the page shows.
const DELAY = 150; // milliseconds without typing before suggestions are requested
const PAGES = [
  ["Home", "/console"], ["Participants", "/console/participants"], ["Invoices", "/console/invoices"],
  ["Providers", "/console/providers"], ["Activity", "/console/activity"], ["Settings", "/console/settings"],
];

// A combobox: `load` returns groups of options for a text, nothing if they can't be loaded, and `choose` is called with the one
// that is chosen.
function combobox(input, list, load, choose) {
  let options = [], active = -1, timer, latest = 0;
  const announced = document.createElement("p"); // screen readers read it whenever its text changes

  announced.ariaLive = "polite";
  announced.className = "unseen";
  list.after(announced);
  list.role = "listbox";
  list.id = `${input.id}-suggestions`;
  list.className = "suggestions";
  list.setAttribute("aria-label", "Suggestions");
  Object.assign(input, { role: "combobox", autocomplete: "off" });
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  close();

  function close() {
    clearTimeout(timer);
    latest += 1; // suggestions that are on their way come too late
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    announced.textContent = "";
  }

  function activate(index) {
    options[active]?.element.setAttribute("aria-selected", "false");
    active = index;
    const option = options[active];
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.element.setAttribute("aria-selected", "true");
    option.element.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.element.id);
  }

  function show(groups = []) {
    const before = options[active]?.value;
    options = [];
    list.replaceChildren(...groups.map(({ heading, results, all }) => {
      const group = document.createElement("div"), label = document.createElement("div");
      group.role = "group";
      label.role = "presentation";
      label.textContent = heading;
      label.hidden = !heading;
      group.setAttribute("aria-label", heading || "Suggestions");
      const places = all ? [...results, { ...all, detail: "", isLink: true }] : results;
      group.append(label, ...places.map((value) => {
        const element = document.createElement("div"), detail = document.createElement("span");
        element.role = "option";
        element.id = `${list.id}-${options.length}`;
        element.setAttribute("aria-selected", "false");
        if (value.isLink) element.className = "all";
        detail.textContent = value.detail;
        element.append(value.title, detail);
        element.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
        element.addEventListener("click", () => { close(); choose(value); });
        options.push({ element, value });
        return element;
      }));
      return group;
    }));
    list.hidden = options.length === 0;
    activate(options.findIndex(({ value }) => value.title === before?.title && value.detail === before?.detail));
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  function announce(groups) {
    const count = groups.reduce((sum, { results }) => sum + results.length, 0);
    const more = groups.some(({ all }) => all) ? ", and more" : "";
    announced.textContent = count ? `${count} result${count === 1 ? "" : "s"}${more}` : "No results";
  }

  async function update() {
    const number = ++latest, text = input.value.trim(), groups = await load(text);
    if (number !== latest || document.activeElement !== input) return;
    show(groups);
    if (text && groups) announce(groups);
    else announced.textContent = "";
  }

  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(update, DELAY); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) return update();
      const step = event.key === "ArrowDown" ? 1 : -1, count = options.length + 1;
      activate((active + 1 + step + count) % count - 1); // the field itself is one of the places
    } else if (event.key === "Enter" && options[active]) {
      event.preventDefault();
      const { value } = options[active];
      close();
      choose(value);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  return update;
}

async function request(parameters) {
  try {
    const response = await fetch(`/console/search/suggest?${new URLSearchParams(parameters)}`);
    const isJson = response.ok && response.headers.get("content-type").startsWith("application/json");
    return isJson ? await response.json() : {};
  } catch {
    return {}; // offline, or the response broke off: the form still works
  }
}

const loadRecords = async (text) => (text ? (await request({ q: text })).groups : []);
const visit = ({ url }) => { location.href = url; };

const field = document.querySelector("[data-search-field]");
if (field) {
  const list = document.createElement("div");
  field.after(list);
  combobox(field, list, loadRecords, visit);
}

function setUp(picker) {
  const [input, id] = picker.querySelectorAll("input"), list = document.createElement("div");
  const load = async (text) => {
    const parameters = { q: text, kind: picker.dataset.picker };
    picker.dispatchEvent(new CustomEvent("suggest", { bubbles: true, detail: parameters })); // a page can add some
    const { candidates } = text ? await request(parameters) : { candidates: [] };
    return candidates && [{ heading: "", results: candidates.map((each) => ({ ...each, title: each.label })) }];
  };
  input.after(list);
  if (id) input.addEventListener("input", () => { id.value = ""; });
  combobox(input, list, load, (value) => {
    input.value = value.label;
    if (id) id.value = value.id;
    picker.dispatchEvent(new CustomEvent("choose", { bubbles: true, detail: value }));
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

for (const picker of document.querySelectorAll("[data-picker]")) setUp(picker);
// A page can add others later.
document.addEventListener("focusin", ({ target }) => {
  const picker = target.closest("[data-picker]");
  if (picker && !picker.querySelector("[role=combobox]")) setUp(picker);
});

// The palette: the search with pages and actions.
function openPalette() {
  const dialog = document.createElement("dialog"), form = document.createElement("form");
  const input = document.createElement("input"), list = document.createElement("div");
  const links = [...document.querySelectorAll("a.button[href^='/console']")].map((link) => [link.textContent.trim(), link.getAttribute("href")]);
  const places = [...links, ...PAGES].map(([title, url]) => ({ title, url, detail: "" }));
  dialog.className = "palette";
  dialog.setAttribute("aria-label", "Search and actions");
  form.action = "/console/search";
  Object.assign(input, { id: "palette", name: "q", type: "search", maxLength: 255, placeholder: "Search, or go to a page" });
  input.setAttribute("aria-label", "Search, or go to a page");
  form.append(input, list);
  dialog.append(form);
  document.body.append(dialog);
  const load = async (text) => {
    const words = text.toLowerCase().split(/\s+/);
    const results = places.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
    const pages = results.length ? [{ heading: "Go to", results }] : [], records = await loadRecords(text);
    return records || results.length ? [...pages, ...records ?? []] : undefined;
  };
  const update = combobox(input, list, load, visit);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.showModal();
  update();
}

// keyboard.js, which comes after this, moves the focus to the field on "/".
document.addEventListener("keydown", (event) => {
  if (!field || event.isComposing || event.altKey || !(event.ctrlKey || event.metaKey)) return;
  if (event.key.toLowerCase() !== "k") return;
  event.preventDefault();
  if (!document.querySelector("dialog[open]")) openPalette();
});
