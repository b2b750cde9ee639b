// The drawing of very many pods: pointing at a cell names its place, a click leads to that pod in the list.
const CELL = 10; // its size in the drawing's own units, as on the server

/** The task and the place of the cell under the pointer. */
function cellAt(event) {
  const map = event.target.closest?.("[data-podmap]");
  if (!map) return null;
  const box = map.getBoundingClientRect();
  const scale = map.viewBox.baseVal.width / box.width;
  const column = Math.floor(((event.clientX - box.left) * scale) / CELL);
  const row = Math.floor(((event.clientY - box.top) * scale) / CELL);
  const index = row * Number(map.dataset.wide) + column;
  return index < Number(map.dataset.cells) ? { task: map.dataset.podmap, index, map } : null;
}

const page = document.querySelector("[data-job]");

page.addEventListener("mousemove", (event) => {
  const cell = cellAt(event);
  const title = event.target.querySelector?.("title");
  if (!cell || !title) return;
  title.dataset.said ??= title.textContent;
  title.textContent = `${cell.task} ${cell.index}: ${title.dataset.said.replace(/^\S+ /, "")}`;
});

page.addEventListener("click", (event) => {
  const cell = cellAt(event);
  if (cell) location.search = new URLSearchParams({ tab: "pods", task: cell.task, index: cell.index });
});
