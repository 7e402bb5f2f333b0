// Moves the focus to the error summary where the browser ignores autofocus. Forms work without this.
const summary = document.querySelector(".summary[autofocus]");
if (summary) summary.focus();
