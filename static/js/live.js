// The live client: one WebSocket a page, topics with sequence numbers, back-off, catch-up, rest while the tab is hidden.
//
//   const stop = subscribe("jobs", { uids: () => [...], onMessage(message) { ... } });
//
// A topic's first message after subscribing sets its sequence; a gap later on means that something was lost, and the
// client subscribes again from nothing. After a break it asks for what came since its last number.
import { fill, words } from "./words.js";
import { clockOf, offsetOf } from "./zone.js";

const HIDDEN_REST = 30_000; // a hidden tab lets go of the socket after this long
const PING = 25_000;
const SILENCE = 10_000; // a ping unanswered for this long means that the line is dead
const LONGEST_WAIT = 30_000;
const SIGNED_OUT = 4401;

const topics = new Map(); // name → {handlers: Set, seq, fresh}
let socket = null;
let attempts = 0;
let retryAt = 0;
let retryTimer = 0;
let restTimer = 0;
let pingTimer = 0;
let silenceTimer = 0;
let lostAt = null;
let over = false;

/** Listen to a topic. `uids` (a function) names the rows shown, without it all are; the result stops listening, its `refresh` says that they changed. */
export function subscribe(name, { uids = null, onMessage }) {
  const handler = { uids, onMessage };
  const topic = topics.get(name) ?? { handlers: new Set(), seq: null, fresh: true };
  topics.set(name, topic);
  topic.handlers.add(handler);
  if (socket?.readyState === WebSocket.OPEN) ask(name, topic);
  else connect();
  const stop = () => {
    topic.handlers.delete(handler);
    if (topic.handlers.size === 0) {
      topics.delete(name);
      send({ op: "unsubscribe", topic: name });
    }
  };
  stop.refresh = () => ask(name, topic);
  return stop;
}

function ask(name, topic, seq = topic.seq) {
  topic.fresh = true;
  const handlers = [...topic.handlers];
  const uids = handlers.every((handler) => handler.uids) ? [...new Set(handlers.flatMap((handler) => handler.uids()))] : null;
  send({ op: "subscribe", topic: name, uids, seq });
}

function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function connect() {
  if (over || socket || topics.size === 0 || document.hidden) return;
  clearTimeout(retryTimer);
  if (lostAt !== null) show("connecting");
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/live/`);
  socket.onopen = () => {
    for (const [name, topic] of topics) ask(name, topic);
    pingTimer = setInterval(ping, PING);
  };
  socket.onmessage = (event) => receive(JSON.parse(event.data));
  socket.onclose = (event) => closed(event.code);
}

/** Give up a line that is dead: nothing answers there, so its own end is not waited for. */
function drop() {
  if (!socket) return;
  socket.onmessage = socket.onclose = null;
  socket.close();
  closed(1006);
}

function ping() {
  send({ op: "ping" });
  silenceTimer = setTimeout(drop, SILENCE);
}

function receive(message) {
  clearTimeout(silenceTimer);
  attempts = 0;
  show("on");
  const topic = topics.get(message.topic);
  if (!topic) return;
  if (message.type === "error") {
    console.warn("live", message.topic, message.message ?? message.detail ?? "");
    return;
  }
  if (!topic.fresh && topic.seq !== null && message.seq !== topic.seq + 1) {
    topic.seq = null;
    ask(message.topic, topic, null);
    return;
  }
  topic.fresh = false;
  topic.seq = message.seq;
  for (const handler of topic.handlers) handler.onMessage(message);
}

function closed(code) {
  socket = null;
  clearInterval(pingTimer);
  clearTimeout(silenceTimer);
  if (document.hidden && code === 1000) return;
  over = code === SIGNED_OUT;
  lostAt ??= new Date();
  attempts += 1;
  const wait = Math.min(LONGEST_WAIT, 500 * 2 ** attempts) * (0.7 + 0.6 * Math.random());
  retryAt = Date.now() + wait;
  show("off");
  if (!over) retryTimer = setTimeout(connect, wait);
}

// What the reader sees of it: the dot, and a banner once the line has been gone for a while.
const link = document.querySelector("[data-live-link]");
const banner = document.querySelector("[data-live-banner]");

function show(state) {
  document.documentElement.dataset.link = state === "on" ? "on" : "off";
  if (link) {
    link.hidden = false;
    link.querySelector(".ba-dot").dataset.live = state === "on" ? "on" : "off";
    link.querySelector("[data-live-word]").textContent = { on: words.live, off: words.offline, connecting: words.connecting }[state];
    const clock = link.querySelector("[data-clock]");
    if (clock && lostAt !== null && state !== "on") clock.textContent = fill(words.since, { time: `${clockOf(lostAt)} ${offsetOf(lostAt)}` });
  }
  if (state === "on") {
    lostAt = null;
    if (banner) banner.hidden = true;
  }
}

function tick() {
  if (!banner || lostAt === null || document.hidden) return;
  if (Date.now() - lostAt < 3000 && !over) return;
  banner.querySelector("[data-live-lost]").textContent = over
    ? words.signedOut
    : fill(words.lost, { time: clockOf(lostAt) });
  const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  banner.querySelector("[data-live-retry]").textContent = over ? "" : fill(words.moment, { seconds });
  banner.hidden = false;
}

setInterval(tick, 1000);
banner?.querySelector("[data-live-now]").addEventListener("click", () => (over ? location.reload() : connect()));
addEventListener("offline", drop); // the browser hears of a lost network at once, the socket only when a ping is missed
addEventListener("online", connect);
document.addEventListener("visibilitychange", () => {
  clearTimeout(restTimer);
  if (document.hidden) restTimer = setTimeout(() => socket?.close(1000), HIDDEN_REST);
  else connect();
});
