// Uploads the chosen or dropped files one after the other, as an account has one upload at a time, each with its progress.
// Without this script, the form sends them together.
const RETRIES = 5; // while the server is busy
const ERRORS = {
  401: "You are no longer signed in. Sign in on another page, and try again.",
  403: "You are no longer signed in, or may no longer add invoices. Reload the page.",
  413: "The file is larger than 20 MiB.",
  429: "The server is busy. Try again.",
  503: "The server is busy, or the storage of documents failed. Try again.",
};

const form = document.querySelector("[data-upload]");
const input = form.querySelector("[type=file]");
const sections = Object.fromEntries(["running", "failed", "added"].map((each) => [each, document.querySelector(`[data-${each}]`)]));
const blank = document.querySelector("[data-file]").content.firstElementChild;
const waiting = [];
let isRunning = false, added = 0, failed = 0;

form.querySelector(".hint")?.remove();
form.querySelector(".drop-hint").hidden = false;
form.querySelector(".row button").hidden = true;
input.addEventListener("change", () => { start([...input.files]); input.value = ""; });

for (const type of ["dragenter", "dragover"]) {
  document.addEventListener(type, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    form.classList.add("over");
  });
}
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) form.classList.remove("over"); });
document.addEventListener("drop", (event) => {
  form.classList.remove("over");
  if (!event.dataTransfer?.files.length) return;
  event.preventDefault();
  start([...event.dataTransfer.files]);
});

function start(files) {
  const max = Number(form.dataset.maxFiles);
  if (files.length > max) {
    say(`You chose ${files.length} files. Choose up to ${max} at once.`, true);
    return;
  }
  say("");
  for (const file of files) enqueue({ file, row: addRow(file) });
}

function addRow(file) {
  const row = blank.cloneNode(true);
  row.querySelector("strong").textContent = file.name;
  return row;
}

function enqueue(upload) {
  move(upload.row, "running");
  upload.row.querySelector(".outcome").textContent = "Waiting";
  upload.row.querySelector("button").hidden = true;
  waiting.push(upload);
  next();
}

function move(row, name) {
  sections[name].querySelector("ul").append(row);
  for (const each of Object.values(sections)) each.hidden = !each.querySelector("li");
}

async function next() {
  if (isRunning || !waiting.length) return;
  isRunning = true;
  const upload = waiting.shift();
  const error = upload.file.size > Number(form.dataset.maxBytes) ? ERRORS[413] : await send(upload);
  if (error) fail(upload, error);
  isRunning = false;
  if (!waiting.length) say(`${added} added${failed ? `, ${failed} not added` : ""}.`);
  next();
}

function fail(upload, message) {
  const button = upload.row.querySelector("button");
  failed += 1;
  upload.row.querySelector(".outcome").textContent = message;
  button.hidden = false;
  button.onclick = () => { failed -= 1; enqueue(upload); };
  move(upload.row, "failed");
}

// Returns the error, or nothing.
async function send(upload) {
  for (let retries = 0; ; retries += 1) {
    const { status, text, delay } = await post(upload);
    if (status === 200) {
      const result = JSON.parse(text);
      if (result.error) return result.error;
      show(upload.row, result);
      return "";
    }
    if (![429, 503].includes(status) || retries === RETRIES) {
      return ERRORS[status] ?? (status ? "The server could not store the file. Try again." : "The connection was lost. Try again.");
    }
    await new Promise((resolve) => { setTimeout(resolve, delay * 1000); });
  }
}

// `fetch` doesn't tell the progress of an upload.
function post(upload) {
  const body = new FormData(), request = new XMLHttpRequest();
  const progress = upload.row.querySelector("progress");
  body.append("csrf", form.elements.csrf.value);
  body.append("response", "json");
  body.append("files", upload.file);
  upload.row.querySelector(".outcome").textContent = "Uploading";
  request.upload.addEventListener("progress", (event) => { progress.value = event.loaded / event.total; });
  return new Promise((resolve) => {
    request.addEventListener("loadend", () => resolve({
      status: request.status, text: request.responseText, delay: Number(request.getResponseHeader("retry-after")) || 1,
    }));
    request.open("POST", form.action);
    request.send(body);
  });
}

function show(row, result) {
  const link = document.createElement("a"), outcome = row.querySelector(".outcome");
  link.className = "break";
  link.href = result.url;
  link.textContent = result.name;
  row.querySelector("strong").replaceWith(link);
  outcome.textContent = result.other_url ? "Added. " : "";
  if (result.other_url) {
    const other = document.createElement("a");
    other.href = result.other_url;
    other.textContent = "Another invoice";
    outcome.append(other, " has the same document.");
  }
  move(row, "added");
  if (!added) sections.added.querySelector("[data-first]").href = result.edit_url;
  added += 1;
}

function say(text, isError = false) {
  const summary = document.querySelector("[data-summary]");
  summary.textContent = text;
  summary.className = isError ? "note" : "unseen";
}
