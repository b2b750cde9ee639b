// A queue's colour is the same on every page: the server says which category each queue has.
const known = JSON.parse(document.getElementById("queue-colours")?.textContent ?? "{}");

/** The category of a queue, 1 to 6; 0 is everybody else's grey. */
export const queueCategory = (name) => known[name] ?? 0;
