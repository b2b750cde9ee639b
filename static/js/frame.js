// The frame's small comforts: theme without a reload, "/" for the search, a clock, menus that close.
import { present } from "./clock.js";
import { durationWords } from "./words.js";
import { clockOf, offsetOf } from "./zone.js";

const root = document.documentElement;

function remember(name, value) {
  document.cookie = `${name}=${value};path=/;max-age=31536000;samesite=lax`;
}

document.querySelector("[data-theme-switch]")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const theme = root.dataset.bsTheme === "dark" ? "light" : "dark";
  root.dataset.bsTheme = theme;
  remember("theme", theme);
  dispatchEvent(new CustomEvent("ba:theme", { detail: theme }));
});

remember("tz", Intl.DateTimeFormat().resolvedOptions().timeZone);

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const box = document.querySelector("[data-search-here]") ?? document.querySelector("[data-search]");
    if (box) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  }
  if (event.key === "Escape") {
    document.querySelectorAll("details.ba-menu[open]").forEach((menu) => {
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
});

document.addEventListener("click", (event) => {
  document.querySelectorAll("details.ba-menu[open]").forEach((menu) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
});

// Spans since a moment count on; the server wrote the first value.
function tick() {
  if (document.hidden) return;
  const now = present();
  document.querySelectorAll("time[data-since]").forEach((element) => {
    const text = durationWords((now - Date.parse(element.dateTime)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  });
  const clock = document.querySelector("[data-clock]");
  if (clock && root.dataset.link !== "off") clock.textContent = `${clockOf(now)} ${offsetOf(now)}`;
}
tick();
setInterval(tick, 1000);
