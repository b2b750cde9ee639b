// Keeps the nodes of a fleet up to date by the live channel. The first answer of its topic is the whole fleet, or `same`.
import { applyRow, isSame, nodesOf, saidOf } from "./fleetdata.js";
import { subscribe } from "./live.js";

/**
 * Follow the fleet. `digest` says which one the nodes were read from ("": none). `onCells(changes)` gets a map of nodes to what
 * their cells were before; `onPlaces(added, gone)` the names of nodes that are not drawn yet, or no more.
 */
export function follow(nodes, { digest = "", model = "", onCells, onPlaces }) {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  let drawn = digest;
  return subscribe("fleet", {
    uids: () => [`=${drawn}`],
    onMessage(message) {
      if (message.same) return;
      drawn = message.digest ?? "";
      const changes = new Map();
      const places = message.fleet ? takeWhole(byName, nodesOf(message.fleet, model), changes) : takeRows(byName, message, model, changes);
      if (changes.size) onCells(changes);
      if (places.added.length || places.gone.length) onPlaces(places.added, places.gone);
    },
  });
}

function takeWhole(byName, fresh, changes) {
  const there = new Set(fresh.map((node) => node.name));
  const added = [];
  for (const { name, ready, cordoned, draining, heard, measured, cells } of fresh) {
    const node = byName.get(name);
    if (!node || node.cells.length !== cells.length) {
      added.push(name);
      continue;
    }
    const before = node.cells;
    const isNew = saidOf(node) !== saidOf({ ready, cordoned, draining });
    const after = cells.map((cell, gpu) => (isSame(cell, before[gpu]) ? before[gpu] : cell));
    Object.assign(node, { ready, cordoned, draining, heard, measured, cells: after });
    if (isNew || after.some((cell, gpu) => cell !== before[gpu])) changes.set(node, before);
  }
  return { added, gone: [...byName.keys()].filter((name) => !there.has(name)) };
}

function takeRows(byName, message, model, changes) {
  const added = [];
  for (const row of message.changed ?? []) {
    const node = byName.get(row.node);
    if (!node) {
      if (row.gpus.length && (!model || row.gpu_model === model)) added.push(row.node);
      continue;
    }
    const before = applyRow(node, row);
    if (before) changes.set(node, before);
  }
  return { added, gone: (message.gone ?? []).filter((name) => byName.has(name)) };
}
