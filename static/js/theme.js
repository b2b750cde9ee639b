// Runs before the first paint: without a choice of the reader, the theme is the one that the system asks for.
(() => {
  const root = document.documentElement;
  if (!root.hasAttribute("data-theme-chosen") && matchMedia("(prefers-color-scheme: dark)").matches) {
    root.dataset.bsTheme = "dark";
  }
})();
