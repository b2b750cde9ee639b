// Brings drawn elements to what a fresh drawing of them says, in place: what stays the same is not touched, so that the pointer, the
// focus and a selection keep what they are on. Children with data-key are known by it; such that are new, and figures, are flagged.
import { flag } from "./patch.js";

/** Make the children of `place` what those of `fresh` are. */
export function graft(place, fresh) {
  const keyed = new Map([...place.children].filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  if (keyed.size && [...fresh.children].every((child) => child.dataset?.key)) return graftRows(place, fresh, keyed);
  const [old, now] = [[...place.childNodes], [...fresh.childNodes]];
  now.forEach((node, at) => (old[at] ? graftNode(old[at], node) : place.append(node)));
  for (const node of old.slice(now.length)) node.remove();
}

function graftRows(place, fresh, keyed) {
  let before = place.firstChild;
  for (const row of [...fresh.children]) {
    const known = keyed.get(row.dataset.key);
    if (known) graftNode(known, row);
    const put = known ?? row;
    if (put === before) before = before.nextSibling;
    else place.insertBefore(put, before);
    if (!known) flag(put);
  }
  while (before) {
    const next = before.nextSibling;
    before.remove();
    before = next;
  }
}

function graftNode(old, node) {
  if (old.nodeType !== node.nodeType || old.nodeName !== node.nodeName) return old.replaceWith(node);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue === node.nodeValue) return undefined;
    old.nodeValue = node.nodeValue;
    const figure = old.parentElement.closest(".ba-figs .v");
    return figure ? flag(figure) : undefined;
  }
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name) && name !== "data-changed") old.removeAttribute(name);
  for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  return graft(old, node);
}
