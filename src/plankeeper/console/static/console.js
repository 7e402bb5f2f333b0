// Copy buttons, pages that are shown only once, texts that are cut off, passwords. Pages work without it.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // Browsers give no access to the clipboard without TLS. Select the text, so that it can be copied by hand.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// A page that is shown only once is the response to a form. Reloading it would submit the form again.
const once = document.querySelector("[data-once]");
if (once) history.replaceState(null, "", once.dataset.once);

// A text that is cut off is shown in full while the pointer is on it.
document.addEventListener("mouseover", (event) => {
  const cell = event.target.closest?.(".rows td");
  const link = cell?.querySelector("a");
  const isCut = cell?.scrollWidth > cell?.clientWidth || link?.scrollHeight > link?.clientHeight + 1;
  if (isCut && !cell.title) cell.title = cell.innerText.trim();
});

// Passwords can be shown while they are typed.
for (const input of document.querySelectorAll("input[type=password]")) {
  const box = document.createElement("div");
  const button = document.createElement("button");
  const label = document.createElement("span");
  box.className = "with-button";
  button.type = "button";
  button.setAttribute("aria-controls", input.id);
  label.className = "unseen";
  label.textContent = " password";
  const show = (isShown) => {
    input.type = isShown ? "text" : "password";
    button.replaceChildren(isShown ? "Hide" : "Show", label);
  };
  button.addEventListener("click", () => show(input.type === "password"));
  // The browser's password manager looks at the type.
  input.form?.addEventListener("submit", () => show(false));
  input.replaceWith(box);
  box.append(input, button);
  show(false);
}
