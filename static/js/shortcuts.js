// Keys of the whole portal: g and a letter go somewhere, t changes the theme, ? says which keys there are.
// None of them while somebody types, holds a modifier or composes a character.
const help = document.querySelector("[data-shortcuts]");
const PATIENCE = 1200; // milliseconds that a g waits for its letter
let waiting = 0;

const act = {
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
