// The fleet as scripts have it: nodes with their cells, read from the compact shape of the page or of the live channel.
//
// A node: {name, spine, rack, model, memory, ready, cordoned, draining, heard, measured, label, cells}. A cell: {state, holder, parts, load,
// used, over}; `holder` and the holders of `parts` are {uid, job, queue, user, task, index, since}, empty where one may not know.

const STATES = { a: "allocated", s: "shared", i: "idle", f: "free", r: "reserved", t: "releasing", u: "unhealthy", c: "cordoned", n: "not_ready", x: "unknown" };
const IN_USE = new Set(["allocated", "shared", "idle", "releasing"]);
export const WHOLE = 1000;
const FRESH = 300; // seconds for which a measurement counts

export const isInUse = (cell) => IN_USE.has(cell.state);
export const isWhole = (node) => node.cells.length > 0 && node.cells.every((cell) => cell.state === "free");

/** How much of a card is promised, of WHOLE. */
export const sizeOf = (cell) => (cell.parts ? cell.parts.reduce((sum, part) => sum + part.size, 0) : isInUse(cell) ? WHOLE : 0);

/** The measured load in percent; null where nobody measured it lately. `now` in seconds. */
export const loadOf = (node, cell, now) => (cell.load === null || now - node.measured > FRESH ? null : cell.load);

/** The nodes of a compact fleet, those of one model only where one is given. */
export function nodesOf(data, model = "") {
  const holders = holdersOf(data);
  const columns = data.nodes;
  const [spine, rack, kind, memory, size, flags, measured] = ["spine", "rack", "model", "memory", "size", "flags", "measured"].map((name) => reader(columns[name]));
  const letters = letterReader(data.cells.state);
  const holder = reader(data.cells.holder);
  const load = data.cells.load ? reader(data.cells.load) : () => -1;
  const used = data.cells.used ? reader(data.cells.used) : () => -1;
  const over = new Set(data.cells.over);
  let place = 0;
  const cell = () => {
    const held = holder();
    const parts = data.cells.parts[place]?.map(([by, share, mib, cores, instance]) => ({ holder: holders[by], size: share, memory: mib, cores, instance })) ?? null;
    const made = { state: STATES[letters()], holder: held < 0 ? null : holders[held], parts, load: known(load()), used: known(used()), over: over.has(place) };
    place += 1;
    return made;
  };
  const nodes = columns.name.map((name) => {
    const flag = flags();
    const node = { name, spine: data.spines[spine()], rack: data.racks[rack()], model: data.models[kind()], memory: memory(), ready: Boolean(flag & 1), cordoned: Boolean(flag & 2), heard: Boolean(flag & 4), draining: Boolean(flag & 8), measured: measured(), label: "", cells: [] };
    for (let left = size(); left > 0; left -= 1) node.cells.push(cell());
    return node;
  });
  const kept = model ? nodes.filter((node) => node.model === model) : nodes;
  shorten(kept);
  return kept;
}

function holdersOf(data) {
  const [job, task, since] = ["job", "task", "since"].map((name) => reader(data.holders[name]));
  return data.holders.index.map((index) => {
    const [uid, name, queue, user] = data.jobs[job()];
    return { uid, job: name, queue, user, task: data.tasks[task()], index, since: since() };
  });
}

const known = (value) => (value < 0 ? null : value);

/** Reads `value, times, value, times, …` one by one. */
function reader(runs) {
  let at = -2;
  let left = 0;
  return () => {
    while (left === 0) {
      at += 2;
      left = runs[at + 1];
    }
    left -= 1;
    return runs[at];
  };
}

function letterReader(text) {
  const runs = [...text.matchAll(/([a-z])(\d*)/g)].flatMap(([, letter, times]) => [letter, Number(times || 1)]);
  return reader(runs);
}

/** Write a row of the live channel onto its node: what its cells were before, or null when nothing that is shown changed. */
export function applyRow(node, row) {
  const before = node.cells;
  const said = saidOf(node);
  const cells = [...before];
  for (const slot of row.gpus) if (slot.index < cells.length) cells[slot.index] = cellOf(slot);
  node.ready = row.ready;
  node.cordoned = row.cordoned;
  node.draining = row.draining;
  node.measured = row.measured ?? node.measured;
  node.cells = cells.map((cell, gpu) => (isSame(cell, before[gpu]) ? before[gpu] : cell));
  return said !== saidOf(node) || node.cells.some((cell, gpu) => cell !== before[gpu]) ? before : null;
}

/** What is said of a node as a whole. */
export const saidOf = ({ ready, cordoned, draining }) => `${ready} ${cordoned} ${draining}`;

const holderOf = (row) => ({ uid: row.job_uid, job: row.job, queue: row.queue, user: row.owner, task: row.task ?? "", index: row.task_index ?? 0, since: row.since ? Date.parse(row.since) / 1000 : 0 });

function cellOf(slot) {
  const isHeld = slot.share !== undefined;
  const parts = slot.parts?.map((part) => ({ holder: holderOf(part), size: part.share, memory: part.memory_mib, cores: part.cores, instance: part.instance ?? "" })) ?? null;
  return { state: slot.state, holder: isHeld ? holderOf(slot) : null, parts, load: slot.load ?? null, used: slot.memory_used_mib ?? null, over: Boolean(slot.over) };
}

/** Whether two cells look alike and say the same. */
export function isSame(a, b) {
  if (a === b) return true;
  return a.state === b.state && a.load === b.load && a.used === b.used && a.over === b.over && isSameHolder(a.holder, b.holder) && isSameParts(a.parts, b.parts);
}

function isSameHolder(a, b) {
  if (a === b || !a || !b) return a === b;
  return a.uid === b.uid && a.job === b.job && a.queue === b.queue && a.user === b.user && a.task === b.task && a.index === b.index && Math.trunc(a.since) === Math.trunc(b.since);
}

function isSameParts(a, b) {
  if (a === b || !a || !b) return a === b;
  return a.length === b.length && a.every((part, at) => part.size === b[at].size && isSameHolder(part.holder, b[at].holder));
}

/** Labels: the node's name without what all names of its rack begin with. */
function shorten(nodes) {
  const racks = Map.groupBy ? Map.groupBy(nodes, (node) => `${node.spine}\n${node.rack}`) : grouped(nodes);
  for (const members of racks.values()) {
    const [first] = members;
    let shared = members.length > 1 ? first.name.length : 0;
    for (const { name } of members) while (shared && !name.startsWith(first.name.slice(0, shared))) shared -= 1;
    const cut = first.name.slice(0, shared).lastIndexOf("-") + 1;
    for (const node of members) node.label = node.name.slice(cut);
  }
}

function grouped(nodes) {
  const racks = new Map();
  for (const node of nodes) {
    const key = `${node.spine}\n${node.rack}`;
    if (!racks.has(key)) racks.set(key, []);
    racks.get(key).push(node);
  }
  return racks;
}
