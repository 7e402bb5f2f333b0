// Copy buttons, and pages that are shown only once. Everything else works without JavaScript.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // Browsers give no access to the clipboard without TLS. Select the text, so that the user can copy it.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// A page that is shown only once is the response to a form. Reloading it would submit the form again.
const once = document.querySelector("[data-once]");
if (once) history.replaceState(null, "", once.dataset.once);
