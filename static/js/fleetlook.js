// How a fleet is coloured: by state, by a measure, or by who has it; with the numbers that a legend shows.
import { queueCategory } from "./colours.js";
import { present } from "./clock.js";
import { isInUse, loadOf, sizeOf, WHOLE } from "./fleetdata.js";

const VALUE = { queue: (holder) => holder.queue, job: (holder) => holder.job, user: (holder) => holder.user };
export const MEASURES = new Set(["load", "memory"]);
const STEPS = 7;

export class Look {
  constructor(nodes, mode) {
    Object.assign(this, { nodes, mode, ranks: new Map(), counts: new Map(), filter: null, selected: "", job: "" });
    this.count();
  }

  setMode(mode) {
    this.mode = mode;
    this.count();
  }

  /** What a cell is painted as; see `paintCell`. */
  fill(node, cell) {
    const { mode } = this;
    if (mode === "model") return cell.state === "free" ? { tint: this.ranks.get(node.model) ?? 0 } : isInUse(cell) && cell.state !== "releasing" ? (this.ranks.get(node.model) ?? 0) : cell.state;
    if (mode === "state") return cell.state === "shared" ? this.#parts(cell, () => null) : cell.state;
    if (!isInUse(cell) || (cell.state === "releasing" && !MEASURES.has(mode))) return cell.state;
    if (MEASURES.has(mode)) {
      const value = this.#measure(node, cell);
      return value === null ? "unmeasured" : { ramp: step(value) };
    }
    return this.#parts(cell, (holder) => this.ranks.get(VALUE[mode](holder) || "") ?? 0);
  }

  #parts(cell, category) {
    if (!cell.parts) return cell.holder ? category(cell.holder) : cell.state;
    return { parts: cell.parts.map(({ size, holder }) => ({ size, category: category(holder) })) };
  }

  /** Percent, null: not measured. */
  #measure(node, cell) {
    return this.mode === "load" ? loadOf(node, cell, present() / 1000) : (100 * sizeOf(cell)) / WHOLE;
  }

  /** The keys of the legend under which a cell is counted. */
  keysOf(node, cell) {
    if (this.mode === "state") return [cell.state];
    if (this.mode === "model") return [node.model];
    if (!isInUse(cell)) return [];
    if (MEASURES.has(this.mode)) {
      const value = this.#measure(node, cell);
      return [value === null ? "unmeasured" : String(step(value))];
    }
    const holders = cell.parts ? cell.parts.map((part) => part.holder) : cell.holder ? [cell.holder] : [];
    return [...new Set(holders.map((holder) => VALUE[this.mode](holder) || ""))];
  }

  /** Count what the legend shows. The six largest values get a colour each, all others grey; queues keep theirs of every page. */
  count() {
    this.counts = new Map();
    for (const node of this.nodes) for (const cell of node.cells) for (const key of this.keysOf(node, cell)) this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    if (this.mode === "state" || MEASURES.has(this.mode)) return;
    const order = [...this.counts].filter(([key]) => key).sort(([a, n], [b, m]) => m - n || a.localeCompare(b));
    this.ranks = this.mode === "queue"
      ? new Map(order.map(([key]) => [key, queueCategory(key)]).filter(([, category]) => category))
      : new Map(order.slice(0, 6).map(([key], at) => [key, at + 1]));
  }
}

const step = (percent) => Math.min(STEPS - 1, Math.floor((percent * STEPS) / 100));
