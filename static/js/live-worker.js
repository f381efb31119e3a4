// One EventSource for all tabs of this browser: an HTTP/1.1 browser opens only six connections to one host.
"use strict";
const ports = new Set();
let source = null;
let state = "connecting";

const tell = (message) => {
  for (const port of ports) port.postMessage(message);
};

const connect = (address) => {
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource(address, { withCredentials: true });
  source.onopen = () => { state = "open"; tell({ kind: "state", state }); };
  source.onerror = () => { state = "lost"; tell({ kind: "state", state }); };
  source.addEventListener("change", (event) => tell({ kind: "change", change: JSON.parse(event.data) }));
};

self.onconnect = (event) => {
  const port = event.ports[0];
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data.kind === "open") {
      connect(data.address);
      port.postMessage({ kind: "state", state });
    } else if (data.kind === "close") {
      ports.delete(port);
      if (!ports.size && source) { source.close(); source = null; }
    }
  };
};
