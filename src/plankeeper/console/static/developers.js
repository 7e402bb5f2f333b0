// Types of events: "All" includes the boxes below it.
for (const fieldset of document.querySelectorAll("[data-event-types]")) {
  const all = fieldset.querySelector("[value='*']");
  const groups = fieldset.querySelector(".event-groups");

  const include = (group) => {
    const [whole, ...types] = group.querySelectorAll("input");
    for (const type of types) {
      type.disabled = whole.checked;
      if (whole.checked) type.checked = true;
    }
  };

  const showGroups = () => {
    groups.hidden = all.checked;
  };

  all.addEventListener("change", showGroups);
  showGroups();
  for (const group of groups.children) {
    const [whole, ...types] = group.querySelectorAll("input");
    whole.addEventListener("change", () => {
      for (const type of types) type.checked = whole.checked;
      include(group);
    });
    include(group);
  }
}
