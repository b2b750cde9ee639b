// The search of the top bar as a palette: Ctrl K or a click opens it, what is typed narrows it, arrows choose, Enter goes there.
// The server writes what fits; without this script the form leads to the same as a page.
const box = document.querySelector("[data-search]");
const list = document.getElementById("found");
const options = () => [...list.querySelectorAll("[role=option]")];
let chosen = -1;

function show(isOpen) {
  list.hidden = !isOpen;
  box.setAttribute("aria-expanded", String(isOpen));
  if (!isOpen) choose(-1);
}

function choose(at) {
  const all = options();
  chosen = all.length && at >= 0 ? (at + all.length) % all.length : -1;
  all.forEach((option, place) => option.setAttribute("aria-selected", String(place === chosen)));
  if (chosen < 0) box.removeAttribute("aria-activedescendant");
  else {
    box.setAttribute("aria-activedescendant", all[chosen].id);
    all[chosen].scrollIntoView({ block: "nearest" });
  }
}

const KEYS = {
  ArrowDown: () => choose(chosen + 1),
  ArrowUp: () => choose(chosen < 0 ? options().length - 1 : chosen - 1 < 0 ? options().length - 1 : chosen - 1),
  Enter: () => (options()[Math.max(chosen, 0)] ?? null)?.click(),
  Escape: () => (list.hidden ? box.blur() : show(false)),
  Tab: () => show(false),
};

box.addEventListener("keydown", (event) => {
  if (event.isComposing || !(event.key in KEYS)) return;
  if (event.key === "Enter" && (list.hidden || list.dataset.text !== box.value.trim())) return; // not what was typed: the form goes
  if (event.key !== "Tab") event.preventDefault();
  KEYS[event.key]();
});

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});

document.addEventListener("click", (event) => {
  if (!event.target.closest(".ba-search")) show(false);
});

let asked = "";
list.addEventListener("htmx:beforeSwap", (event) => {
  if (new URL(event.detail.xhr.responseURL).pathname !== new URL(box.form.action).pathname) location.reload(); // signed out
});
box.addEventListener("htmx:beforeRequest", () => (asked = box.value.trim()));
list.addEventListener("htmx:afterSwap", () => {
  list.dataset.text = asked;
  show(document.activeElement === box);
  choose(asked ? 0 : -1);
});
