// Selected rows of a list: one box for all, and how many are selected. Pages work without it.
const bar = document.querySelector("[data-selection]");

if (bar) {
  const boxes = [...document.querySelectorAll("tbody input[name=id]")];
  const all = document.querySelector("[data-select-all]");
  const count = bar.querySelector("[data-count]");
  const matching = bar.querySelector("[name=all]"); // also on the other pages
  const limit = bar.querySelector("[data-limit]"); // instead, where more match than can be changed at once

  const update = () => {
    const selected = boxes.filter((each) => each.checked);
    for (const each of boxes) each.closest("tr").setAttribute("aria-selected", each.checked);
    bar.hidden = selected.length === 0;
    all.checked = selected.length === boxes.length;
    if (limit) limit.hidden = !all.checked;
    if (matching) matching.checked &&= all.checked;
    count.textContent = matching?.checked ? `All ${matching.dataset.total} selected` : `${selected.length} selected`;
    all.indeterminate = selected.length > 0 && !all.checked;
  };

  all.hidden = false;
  all.addEventListener("change", () => {
    for (const each of boxes) each.checked = all.checked;
    update();
  });
  for (const each of boxes) each.addEventListener("change", update);
  matching?.addEventListener("change", () => {
    if (matching.checked) for (const each of boxes) each.checked = true;
    update();
  });
  // The address of the next page then doesn't need the rows of this one.
  bar.closest("form").addEventListener("formdata", ({ formData }) => formData.has("all") && formData.delete("id"));
  bar.querySelector("[type=reset]").hidden = false;
  // The boxes are reset after the event.
  bar.closest("form").addEventListener("reset", () => setTimeout(update));
  // The browser may restore the boxes when somebody comes back to the page.
  addEventListener("pageshow", update);
  update();
}

// A filter applies as soon as it is chosen; a text, when Enter is pressed. Keys that only move through the choices of a
// closed menu don't apply them.
const filters = document.querySelector("[data-filters]");
let moves = false;

filters?.addEventListener("keydown", ({ key, target }) => { moves = target.tagName === "SELECT" && ![" ", "Enter"].includes(key); });
filters?.addEventListener("pointerdown", () => { moves = false; });
filters?.addEventListener("change", ({ target }) => {
  const isChosen = target.matches("select, [type=checkbox]") || target.parentElement.querySelector("input[type=hidden]")?.value;
  if (!isChosen || moves) return;
  if (target.matches("[data-preset]")) for (const each of target.parentElement.querySelectorAll("input")) each.value = "";
  filters.requestSubmit();
});
