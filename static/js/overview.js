// The overview, live: figures and queue bars change in place, the chart grows at its right end.
import { nodesOf } from "./fleetdata.js";
import { follow } from "./fleetlive.js";
import { Look } from "./fleetlook.js";
import { FleetMap } from "./fleetmap.js";
import { graft } from "./graft.js";
import { subscribe } from "./live.js";
import { flag, patch } from "./patch.js";
import { stack } from "./stack.js";
import { amountWords, fill, language, numberWords, shortModel } from "./words.js";

const STEP = 30_000;

const box = document.querySelector("[data-chart=queues]");
const chart = box && stack(box);
const told = box ? JSON.parse(document.getElementById(box.dataset.source).textContent) : {};
const GPU = told.gpu ?? "nvidia.com/gpu";
let asked = null;

const figures = document.querySelector("[data-figures]");
const latest = new Map();
subscribe("overview", {
  // Figures and queues are of one moment and are shown in one go, so that they agree whatever moves.
  onMessage(message) {
    if (!message.figures) return;
    patch(figures, message.figures);
    redraw(document.querySelector("[data-held]"), message.held[language]);
    asked = message.figures.gpus_waiting;
    for (const name of told.queues ?? []) latest.set(name, (message.lines[name]?.[0] ?? 0) / 1000);
    for (const line of document.querySelectorAll("[data-share]")) patchShare(line, message.lines[line.dataset.share] ?? [0, 0, 0, 0]);
    if (message.type === "snapshot" && latest.size) chart?.push(latest, asked);
  },
});

function redraw(place, html) {
  const fresh = document.createElement("section");
  fresh.innerHTML = html;
  graft(place, fresh);
}

function patchShare(line, [allocated, deserved, admitted, waiting]) {
  const bar = line.querySelector(".ba-share");
  const scale = Number(bar.dataset.scale) || 1;
  const widths = { "--alc": allocated, "--adm": admitted, "--des": deserved };
  for (const [name, value] of Object.entries(widths)) bar.style.setProperty(name, `${Math.min(100, (100 * value) / scale).toFixed(2)}%`);
  put(line.querySelector("[data-allocated]"), amountWords(allocated, GPU));
  put(line.querySelector("[data-deserved]"), amountWords(deserved, GPU));
  put(line.querySelector("[data-waiting]"), numberWords(waiting));
}

function put(figure, text) {
  if (figure.textContent === text) return;
  figure.textContent = text;
  flag(figure);
}

setInterval(() => {
  if (chart && latest.size && !document.hidden) chart.push(latest, asked);
}, STEP);

// The small map of the fleet: drawn as large as its place is, changed cell by cell; new machines are for the next page.
const host = document.getElementById("ov-fleet");
if (host) {
  const text = JSON.parse(document.getElementById("ov-fleet-words").textContent);
  const nodes = nodesOf(JSON.parse(document.getElementById("ov-fleet-data").textContent));
  const freeOf = (node) => node.cells.filter((cell) => cell.state === "free").length;
  const count = (all, of) => all.reduce((sum, node) => sum + of(node), 0);
  const said = {
    spine: (spine) => ({
      name: `${spine.name || text.noSpine}  ${[...new Set(spine.nodes.map((node) => shortModel(node.model)))].join(" · ")}`,
      detail: fill(text.spineFree, { free: numberWords(count(spine.nodes, freeOf)), total: numberWords(count(spine.nodes, (node) => node.cells.length)) }),
    }),
    rack: () => ({ title: "", free: "" }),
    node: () => "",
  };
  const look = new Look(nodes, "state");
  const map = new FleetMap(host, nodes, look, said, { largest: document.querySelector(".wall") ? 4 : host.clientWidth < 480 ? 1 : 3, height: Math.max(120, host.clientHeight) });
  follow(nodes, { digest: host.dataset.digest, onCells: (changes) => map.repaint(changes), onPlaces() {} });
}
