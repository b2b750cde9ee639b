// What came to be, or went, since the page was drawn gathers behind a chip that loads the page anew: nothing moves by itself.
import { fill, words } from "./words.js";

const chip = document.querySelector("[data-news]");
const fresh = new Set();
let otherwise = false;

/** Say that a thing of this name is new. */
export function isNew(name) {
  fresh.add(name);
  show();
}

/** Say that something that is drawn is drawn wrongly by now. */
export function isChanged() {
  otherwise = true;
  show();
}

function show() {
  if (!chip) return;
  chip.hidden = false;
  chip.textContent = otherwise ? words.changed : fill(words.new, { count: fresh.size });
}
