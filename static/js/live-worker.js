// One stream for all tabs of this browser: an HTTP/1.1 browser opens only six connections to one host.
// What the pages are told of it: "connecting", "open", "lost" (tried again soon), "full" (the server keeps no more
// streams; tried again when it says so). Pages ask by themselves while it is not open.
"use strict";
const ports = new Set();
let abort = null;
let state = "connecting";
let place = "";
let waiting = 0;
const RETRY_MS = 2000;
// The newest changes, for a page that was asked for before they happened and listens only now.
const KEPT = 200;
const recent = [];

const tell = (message) => {
  for (const port of ports) port.postMessage(message);
};
const become = (next) => {
  state = next;
  tell({ kind: "state", state });
};

const placeOf = (id) => id.split("-").map(Number);
const later = (id, after) => {
  const [[ms, n], [otherMs, otherN]] = [placeOf(id), placeOf(after)];
  return ms > otherMs || (ms === otherMs && n > otherN);
};

const heard = (id, kind, data) => {
  if (kind !== "change") return;
  place = id;
  const change = JSON.parse(data);
  recent.push({ id, change });
  if (recent.length > KEPT) recent.shift();
  tell({ kind: "change", change });
};

const read = async (body) => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = {};
      for (const line of part.split("\n")) {
        const [name, ...text] = line.split(": ");
        if (name) fields[name] = text.join(": ");
      }
      heard(fields.id, fields.event, fields.data);
    }
  }
};

const listen = async (address) => {
  if (abort || !ports.size) return;
  abort = new AbortController();
  const mine = abort;
  let next = "lost";
  let wait = RETRY_MS;
  try {
    const headers = { Accept: "text/event-stream" };
    const answer = await fetch(`${address}?after=${place}`, { headers, signal: mine.signal, cache: "no-store" });
    if (answer.ok) {
      become("open");
      await read(answer.body);
    } else {
      if (answer.status === 429 || answer.status === 503) next = "full";
      wait = 1000 * Number(answer.headers.get("Retry-After") || 30);
    }
  } catch { /* the network, or nobody listens any more */ }
  if (abort !== mine) return;
  abort = null;
  become(next);
  // Not all browsers come back in the same moment.
  clearTimeout(waiting);
  waiting = setTimeout(() => { waiting = 0; listen(address); }, wait * (1 + Math.random() / 2));
};

self.onconnect = (event) => {
  const port = event.ports[0];
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data.kind === "open") {
      for (const { id, change } of recent) if (later(id, data.after)) port.postMessage({ kind: "change", change });
      if (!place) place = data.after;
      if (!waiting) listen(data.address);
      port.postMessage({ kind: "state", state });
    } else if (data.kind === "close") {
      ports.delete(port);
      if (ports.size) return;
      clearTimeout(waiting);
      waiting = 0;
      place = "";
      state = "connecting";
      if (abort) { const mine = abort; abort = null; mine.abort(); }
    }
  };
};
