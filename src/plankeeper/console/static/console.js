// Copy buttons, and pages that are shown once. Everything else works without a script.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // Without TLS a browser keeps its clipboard to itself: the text is selected, to be copied by hand.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// What is shown once is the answer to a form. Reloaded, it would send the form again, and make another.
const once = document.querySelector("[data-once]");
if (once) history.replaceState(null, "", once.dataset.once);
