// One EventSource for all tabs of this browser: an HTTP/1.1 browser opens only six connections to one host.
"use strict";
const ports = new Set();
let source = null;
let state = "connecting";
// The newest changes, for a page that was asked for before they happened and listens only now.
const KEPT = 200;
const recent = [];

const tell = (message) => {
  for (const port of ports) port.postMessage(message);
};

const placeOf = (id) => id.split("-").map(Number);
const later = (id, after) => {
  const [[ms, n], [otherMs, otherN]] = [placeOf(id), placeOf(after)];
  return ms > otherMs || (ms === otherMs && n > otherN);
};

const connect = (address, after) => {
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource(`${address}?after=${after}`, { withCredentials: true });
  source.onopen = () => { state = "open"; tell({ kind: "state", state }); };
  source.onerror = () => { state = "lost"; tell({ kind: "state", state }); };
  source.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    recent.push({ id: event.lastEventId, change });
    if (recent.length > KEPT) recent.shift();
    tell({ kind: "change", change });
  });
};

self.onconnect = (event) => {
  const port = event.ports[0];
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data.kind === "open") {
      for (const { id, change } of recent) if (later(id, data.after)) port.postMessage({ kind: "change", change });
      connect(data.address, data.after);
      port.postMessage({ kind: "state", state });
    } else if (data.kind === "close") {
      ports.delete(port);
      if (!ports.size && source) { source.close(); source = null; }
    }
  };
};
