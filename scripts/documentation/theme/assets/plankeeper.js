// The theme puts each copy button into a navigation landmark, of which screen readers would list all. And a table that is
// wider than the screen must have the focus before a keyboard can scroll it.
const improve = () => {
  for (const each of document.querySelectorAll("nav.md-code__nav:not([role])")) {
    each.setAttribute("role", "presentation");
  }
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    each.setAttribute("tabindex", "0");
  }
};
new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });
improve();
