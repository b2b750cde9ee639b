// The queue tree by keyboard: up and down move, left and right fold, Enter opens. Without script every line is a link.
for (const table of document.querySelectorAll("[data-tree]")) {
  const rows = [...table.tBodies[0].rows];
  const depth = (row) => Number(row.dataset.depth);
  const shown = () => rows.filter((row) => !row.hidden);

  const focus = (row) => {
    if (!row) return;
    for (const each of rows) each.tabIndex = each === row ? 0 : -1;
    row.focus();
  };
  const fold = (row, open) => {
    if (!row.hasAttribute("aria-expanded")) return;
    row.setAttribute("aria-expanded", String(open));
    row.querySelector(".ar").textContent = open ? "▾" : "▸";
    const from = rows.indexOf(row);
    let closed = Infinity; // depth below which a folded parent hides its children
    for (const each of rows.slice(from + 1)) {
      if (depth(each) <= depth(row)) break;
      if (depth(each) <= closed) closed = Infinity;
      each.hidden = !open || closed < Infinity;
      if (!each.hidden && each.getAttribute("aria-expanded") === "false") closed = depth(each);
    }
  };

  table.addEventListener("click", (event) => {
    if (event.target.closest(".ar")) fold(event.target.closest("tr"), event.target.closest("tr").getAttribute("aria-expanded") === "false");
  });
  table.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const list = shown();
    const at = list.indexOf(row);
    const open = row.getAttribute("aria-expanded");
    const keys = {
      ArrowDown: () => focus(list[at + 1]),
      ArrowUp: () => focus(list[at - 1]),
      Home: () => focus(list[0]),
      End: () => focus(list.at(-1)),
      ArrowRight: () => (open === "false" ? fold(row, true) : open === "true" && focus(list[at + 1])),
      ArrowLeft: () => (open === "true" ? fold(row, false) : focus(list.slice(0, at).findLast((each) => depth(each) < depth(row)))),
      Enter: () => event.target === row && row.querySelector("a.name").click(),
    };
    if (!keys[event.key] || (event.key === "Enter" && event.target !== row)) return;
    event.preventDefault();
    keys[event.key]();
  });
}
