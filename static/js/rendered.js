// Pages whose parts are drawn on the server: a part that changed comes whole over the live channel and takes its place.
//
//   <div data-rendered="flows">            the topic
//     <tr data-part="…">                   a part by its name; in lists, which say data-list, that is the row's uid
//
// With data-graft only what is different in a part is touched. A part that the page has no place for, or whose `shape` is another, asks
// the page anew. Clock times come in the server's zone and are written in the reader's.
import { graft } from "./graft.js";
import { subscribe } from "./live.js";
import { isChanged, isNew } from "./news.js";
import { language } from "./words.js";
import { clockOf, dayOf, titleOf } from "./zone.js";

const page = document.querySelector("[data-rendered]");
const parts = () => [...page.querySelectorAll("[data-part]")];
const part = (name) => page.querySelector(`[data-part="${CSS.escape(name)}"]`);

function receive(message) {
  for (const row of message.changed ?? []) {
    const place = part(row.uid);
    if (place) write(place, row.html[language] ?? row.html.en);
    else if (message.type === "delta" && "list" in page.dataset) isNew(row.uid);
  }
  for (const uid of message.gone ?? []) part(uid)?.classList.add("gone");
  if (message.more) isChanged(); // of very many changes, those not shown here are only counted
  document.dispatchEvent(new CustomEvent("basalt:parts"));
}

/** Put a text into its place; what has the focus keeps it. */
function write(place, html) {
  const fresh = document.createElement(place.tagName === "TR" ? "tbody" : "div");
  const target = place.tagName === "TR" ? fresh.appendChild(document.createElement("tr")) : fresh;
  target.innerHTML = html;
  for (const time of target.querySelectorAll("time[title]")) local(time);
  if (target.innerHTML === place.innerHTML) return;
  if ("graft" in page.dataset) {
    graft(place, target);
    if (place.dataset.part === "shape") htmx.trigger(page, "outdated");
    return;
  }
  const held = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  place.replaceChildren(...target.childNodes);
  if (held) place.querySelector(`[href="${CSS.escape(held)}"]`)?.focus();
}

/** An instant in the reader's zone, with its day where that is not today's, as the server writes it. */
function local(time) {
  const at = time.dateTime;
  const day = dayOf(at) === dayOf(Date.now()) || time.closest("[data-clock-only]") ? "" : `${dayOf(at)} `;
  time.textContent = day + clockOf(at);
  time.title = titleOf(at);
}

if (page) subscribe(page.dataset.rendered, { uids: () => parts().map((place) => place.dataset.part), onMessage: receive });
