// The editor of a blueprint's definition, over the page's own text area.
import { editor } from "./editor.js";

const area = document.getElementById("source");
const form = document.getElementById("definition");
const yaml = editor(area, { onEdit() {}, onSubmit: () => form.requestSubmit(form.querySelector(".acts .go")) });

const file = document.getElementById("file");
file.removeAttribute("name"); // read here; without script it is posted
file.closest(".sb-file").classList.add("scripted");
form.querySelector("[value=load]").addEventListener("click", (event) => {
  event.preventDefault();
  file.click();
});
file.addEventListener("change", async () => {
  if (file.files[0]) yaml.replace(await file.files[0].slice(0, 262_144).text());
  file.value = "";
});

const faults = [...document.querySelectorAll(".bp-faults li")]
  .map((item) => ({ message: item.textContent.trim(), line: Number(/\b(?:line )(\d+)/.exec(item.textContent)?.[1] ?? 0) }))
  .filter((fault) => fault.line);
yaml.faults(faults);
