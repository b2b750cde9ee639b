// The fleet as a small map inside another page: it fits a height, follows the live channel, and leads to the page of GPUs.
//
//   embed(host, { height: 220, href: "/gpus/?node=NODE" });
//
// The host needs nothing but a width. Cells are coloured by state; what is pointed at has its node's name as the title.
import { nodesOf } from "./fleetdata.js";
import { follow } from "./fleetlive.js";
import { Look } from "./fleetlook.js";
import { FleetMap } from "./fleetmap.js";
import { subscribe } from "./live.js";

const NO_WORDS = { spine: ({ name }) => ({ name, detail: "" }), rack: ({ name }) => ({ title: name, free: "" }), node: () => "" };

/** Draw the fleet into `host` as soon as the live channel has told it; `words` as FleetMap takes them, for heads. */
export function embed(host, { height = 220, href = "", mode = "state", heads = false, words = NO_WORDS } = {}) {
  const stop = subscribe("fleet", {
    uids: () => ["="],
    onMessage(message) {
      if (!message.fleet) return;
      stop();
      draw(host, nodesOf(message.fleet), message.digest, { height, href, mode, heads, words });
    },
  });
}

function draw(host, nodes, digest, { height, href, mode, heads, words }) {
  const look = new Look(nodes, mode);
  const map = new FleetMap(host, nodes, look, words, { heads, height });
  const hitOf = (event) => (event.target.band ? map.at(event.target.band, event.offsetX, event.offsetY) : null);
  host.addEventListener("pointermove", (event) => {
    const hit = hitOf(event);
    host.title = hit?.node.name ?? "";
    map.pick(hit && hit.gpu >= 0 ? hit : null);
  });
  host.addEventListener("pointerleave", () => map.pick(null));
  host.addEventListener("click", (event) => {
    const hit = hitOf(event);
    if (hit && href) location.assign(href.replace("NODE", encodeURIComponent(hit.node.name)));
  });
  addEventListener("ba:theme", () => map.redraw());
  follow(nodes, {
    digest,
    onCells(changes) {
      look.count();
      map.repaint(changes);
    },
    onPlaces() {}, // machines that come or go are drawn with the next page
  });
}
