// The editor of a blueprint's definition, over the page's own text area.
import { editor } from "./editor.js";

const area = document.getElementById("source");
const form = document.getElementById("definition");
const yaml = editor(area, { onEdit() {}, onSubmit: () => form.requestSubmit(form.querySelector(".acts .go")) });

const faults = [...document.querySelectorAll(".bp-faults li")]
  .map((item) => ({ message: item.textContent.trim(), line: Number(/\b(?:line )(\d+)/.exec(item.textContent)?.[1] ?? 0) }))
  .filter((fault) => fault.line);
yaml.faults(faults);
