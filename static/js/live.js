// Fetches the changing part of a page again when an event says that it changed: at most every REST_MS, never while the
// reader has a menu, a dialog or a form open, nor while the tab is hidden. Without events the page asks by itself.
(() => {
  "use strict";
  const REST_MS = 10000;
  const SOON_MS = 2500;
  // A server that takes long is asked less often: hundreds of open pages then share what it can do.
  const REST_OF_ANSWER = 30;
  const REST_MOST_MS = 60000;
  const POLL_MS = 10000;
  const body = document.body.dataset;
  const toggle = document.getElementById("live-toggle");
  const text = document.getElementById("live-text");
  const region = () => document.getElementById("live");
  if (!toggle || !region()?.dataset.live) return;

  let dirty = false;
  let last = Date.now();
  let rest = REST_MS;
  let soon = false;
  // One event concerns many pages: each looks at a moment of its own within its rest.
  let due = 0;
  const stir = () => {
    if (!dirty) due = Date.now() + Math.random() * (rest - SOON_MS);
    dirty = true;
  };
  // What the server last sent: where that is still so, it answers with nothing.
  let seen = "";
  let connected = false;
  let full = false;
  let failed = false;
  let paused = localStorage.getItem("live") === "paused";

  const busy = () => {
    if (document.hidden || document.querySelector("dialog[open], .dropdown-menu.show")) return true;
    const active = document.activeElement;
    if (active && active !== document.body && active.closest("form, #live")) return true;
    // What is chosen there would be chosen no longer.
    if (region().querySelector("form input[type=checkbox]:checked")) return true;
    return Boolean(String(window.getSelection()) && region().contains(window.getSelection().anchorNode));
  };

  const show = () => {
    const seconds = Math.round((Date.now() - last) / 1000);
    toggle.setAttribute("aria-pressed", String(paused));
    if (paused) text.textContent = body.paused;
    else if (failed) text.textContent = body.offline;
    else if (full) text.textContent = body.polled.replace("%s", window.tideDuration(POLL_MS / 1000));
    else text.textContent = seconds < 1 ? body.updatedNow : body.updated.replace("%s", window.tideDuration(seconds));
  };

  const step = () => {
    const waited = Date.now() - last;
    if (!connected && waited > POLL_MS) stir();
    if (dirty && !paused && waited > (soon ? SOON_MS : rest) && (soon || Date.now() >= due) && !busy()) {
      dirty = soon = false;
      last = Date.now();
      window.htmx.trigger(region(), "refetch");
      document.dispatchEvent(new CustomEvent("refetch"));
    }
    show();
  };

  // A value that changed glows for a second; nothing else moves.
  let before = new Map();
  const values = () => new Map([...region().querySelectorAll("[data-glow]")].map((el) => [el.dataset.glow, el.textContent]));
  document.addEventListener("htmx:beforeSwap", (event) => { if (event.detail.target?.id === "live") before = values(); });
  document.addEventListener("htmx:afterSettle", () => {
    for (const el of region().querySelectorAll("[data-glow]")) {
      const old = before.get(el.dataset.glow);
      if (old !== undefined && old !== el.textContent) el.classList.add("glow");
    }
    before = new Map();
  });
  // What was typed or chosen in a form survives a new form of the same name.
  let typed = [];
  const fields = "form[id] :is(input:not([type=hidden], [type=checkbox]), textarea)[name]";
  const chosen = (el) => (el.type === "radio" ? el.checked && !el.defaultChecked : el.value !== el.defaultValue);
  const placeOf = (el) => {
    const place = `#${CSS.escape(el.form.id)} [name="${CSS.escape(el.name)}"]`;
    return el.type === "radio" ? `${place}[value="${CSS.escape(el.value)}"]` : place;
  };
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target?.id !== "live") return;
    typed = [...region().querySelectorAll(fields)].filter(chosen).map((el) => [placeOf(el), el.value]);
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const [place, value] of typed) {
      const el = region().querySelector(place);
      if (el?.type === "radio") el.checked = true;
      else if (el && el.value === el.defaultValue) el.value = value;
    }
    typed = [];
  });
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.target?.id === "live" && event.detail.verb === "get" && seen) event.detail.headers["If-None-Match"] = seen;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status === 304) event.detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { xhr, target } = event.detail;
    if (target?.id !== "live" || !xhr) return;
    if (xhr.status === 200) seen = xhr.getResponseHeader("ETag") || "";
    rest = Math.min(REST_MOST_MS, Math.max(REST_MS, REST_OF_ANSWER * (Date.now() - last)));
  });
  document.addEventListener("htmx:afterRequest", (event) => { failed = !event.detail.successful; if (!failed) last = Date.now(); show(); });

  toggle.addEventListener("click", () => {
    paused = !paused;
    localStorage.setItem("live", paused ? "paused" : "on");
    dirty = true;
    due = 0;
    step();
  });

  const topics = () => region().dataset.live.split(" ");
  const heard = (message) => {
    if (message.kind === "state") { connected = message.state === "open"; full = message.state === "full"; show(); }
    else if (topics().includes(message.change.topic)) {
      stir();
      // News of the object that the page is about is shown soon, however many pages are open.
      soon ||= region().dataset.object === `${message.change.topic} ${message.change.id}`;
    }
  };
  if (window.SharedWorker) {
    const { port } = new SharedWorker(body.worker, "tidesched-live");
    port.onmessage = ({ data }) => heard(data);
    port.start();
    // From where the page was looked up: what changed since then is not on it.
    const open = () => port.postMessage({ kind: "open", address: new URL(body.stream, window.location.href).href, after: body.after });
    open();
    window.addEventListener("pagehide", () => port.postMessage({ kind: "close" }));
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) { dirty = true; due = 0; open(); }
    });
  }
  setInterval(step, 500);
  show();
})();
