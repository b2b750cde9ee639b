// Parts of a page that ask for themselves now and then (htmx): a part that did not change, or that is in use (somebody chose rows in it), is left alone.
const last = new WeakMap();

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.elt.matches("[data-refresh]")) event.preventDefault();
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr, requestConfig } = event.detail;
  if (!requestConfig.elt.matches("[data-refresh]")) return;
  if (xhr.responseURL && new URL(xhr.responseURL).pathname !== location.pathname) {
    location.reload(); // the session has ended
    event.detail.shouldSwap = false;
    return;
  }
  const selected = getSelection();
  const inUse = target.querySelector("[type=checkbox]:checked") || target.contains(document.activeElement) || (selected && !selected.isCollapsed && target.contains(selected.anchorNode));
  if (inUse || last.get(target) === xhr.responseText) event.detail.shouldSwap = false;
  else last.set(target, xhr.responseText);
});

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target } = event.detail;
  if (target.contains(document.activeElement)) event.detail.shouldSwap = false; // a button there is about to be pressed
});
