// Forms: the focus goes to the error summary where the browser ignores autofocus, leaving a page with changes that are
// not saved asks first, permissions fit the choice of access, and the specific exit reasons are those of the exit
// reason. Forms work without this.
const summary = document.querySelector(".summary[autofocus]");
if (summary) summary.focus();

const changed = new Set();
for (const form of document.querySelectorAll("main form.card[method=post]")) {
  form.addEventListener("input", () => changed.add(form));
  form.addEventListener("submit", () => changed.clear());
}
addEventListener("beforeunload", (event) => { if (changed.size) event.preventDefault(); });

for (const choice of document.querySelectorAll("input[type=radio][name=access]")) {
  const boxes = [...choice.form.querySelectorAll("input[name=permissions]")];
  choice.addEventListener("change", () => { if (choice.value === "none") for (const box of boxes) box.checked = false; });
  if (choice.value === "some") for (const box of boxes) box.addEventListener("change", () => { if (box.checked) choice.checked = true; });
}

const reason = document.querySelector("select[name=exit_reason_category_id]");
if (reason) {
  const specific = reason.form.elements.exit_reason_subcategory_id, [unset, ...groups] = specific.children;
  const offer = () => {
    const { value } = specific;
    specific.replaceChildren(unset, ...groups.filter((each) => each.label === reason.selectedOptions[0].textContent || value && each.querySelector(":checked")));
    specific.value = value;
  };
  reason.addEventListener("change", () => { specific.value = ""; offer(); });
  offer();
}
