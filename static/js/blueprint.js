// Filling out a blueprint: Ctrl+Enter submits from anywhere, Enter in a field only looks.
import "./dryrun.js";

const form = document.getElementById("draft");

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.defaultPrevented) return;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    const go = form.querySelector(".acts .go");
    if (go) form.requestSubmit(go);
  } else if (event.target.matches("#draft input:not([type=checkbox])")) {
    event.preventDefault();
  }
});
