// Keys of the whole portal: g and a letter go somewhere, j and k go through lists, t changes the theme, ? says which keys there are.
// None of them while somebody types, holds a modifier or composes a character.
const help = document.querySelector("[data-shortcuts]");
const PATIENCE = 1200; // milliseconds that a g waits for its letter
let waiting = 0;

/** The links by which the lines of this page's lists are opened; the job list has keys of its own. */
const lines = () => [...document.querySelectorAll("main tbody tr, main [data-line]")]
  .filter((line) => line.offsetParent && !line.closest("#results"))
  .map((line) => line.querySelector("a[href]"))
  .filter(Boolean);

function move(step) {
  const all = lines();
  const here = document.activeElement?.closest("tr, [data-line]");
  const at = all.findIndex((link) => link.closest("tr, [data-line]") === here);
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const act = {
  j: () => move(1),
  k: () => move(-1),
  "?": () => help.showModal(),
  t: () => document.querySelector("[data-theme-switch]")?.requestSubmit(),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable], .cm-editor");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open) return;
  if (waiting) {
    clearTimeout(waiting);
    waiting = 0;
    help.querySelector(`[data-go="${CSS.escape(event.key)}"]`)?.click();
    return;
  }
  if (event.key === "g") waiting = setTimeout(() => (waiting = 0), PATIENCE);
  else act[event.key]?.();
});

help.addEventListener("click", (event) => {
  if (event.target === help) help.close();
});
