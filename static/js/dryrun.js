// What the last dry run said stays, dimmed, until the next one has answered: nothing jumps while one types.
let last = "";

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.target.id === "check") last = document.getElementById("dry-run")?.innerHTML ?? last;
});
document.addEventListener("htmx:oobAfterSwap", (event) => {
  if (event.target.id !== "check") return;
  const place = document.getElementById("dry-run");
  if (!place || place.innerHTML.trim() || !last) return;
  place.innerHTML = last;
  place.toggleAttribute("data-stale", true);
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "dry-run") event.target.toggleAttribute("data-stale", false);
});
