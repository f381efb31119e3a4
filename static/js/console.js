// What every page needs: times that stay fresh, keys, copying, dialogs, filters that apply by themselves.
(() => {
  "use strict";
  const body = document.body.dataset;
  const [s, min, h, d] = (body.units || "s|min|h|d").split("|");

  // The same two units that amounts.py writes.
  const duration = (seconds) => {
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 60) return `${whole} ${s}`;
    const minutes = Math.floor(whole / 60);
    if (minutes < 60) return minutes < 10 && whole % 60 ? `${minutes} ${min} ${whole % 60} ${s}` : `${minutes} ${min}`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return minutes % 60 ? `${hours} ${h} ${minutes % 60} ${min}` : `${hours} ${h}`;
    const days = Math.floor(hours / 24);
    return hours % 24 ? `${days} ${d} ${hours % 24} ${h}` : `${days} ${d}`;
  };
  window.tideDuration = duration;

  // The cluster's own clock, from what it said when the changing part of the page was made, or the page where none does.
  let clock = null;
  const setClock = () => {
    const face = document.getElementById("cluster-clock");
    const { now = face?.dateTime, rate = face?.dataset.rate } = document.getElementById("live")?.dataset || {};
    clock = now ? { now: Date.parse(now), rate: Number(rate), at: Date.now() } : null;
  };
  const tick = () => {
    const now = Date.now();
    const there = clock && clock.now + (now - clock.at) * clock.rate;
    const face = there && document.getElementById("cluster-clock");
    if (face) {
      // The Swedish way of writing a date is 2026-03-02 17:55.
      const how = { timeZone: face.dataset.zone, dateStyle: "short", timeStyle: "short" };
      face.textContent = new Intl.DateTimeFormat("sv-SE", how).format(there);
    }
    for (const time of clock ? document.querySelectorAll("time[data-by-cluster]") : []) {
      const seconds = (there - Date.parse(time.dateTime)) / 1000;
      if (seconds >= 1) time.textContent = time.dataset.byCluster === "ago" ? body.ago.replace("%s", duration(seconds)) : duration(seconds);
    }
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const seconds = (now - Date.parse(time.dateTime)) / 1000;
      if (seconds >= 1) time.textContent = body.ago.replace("%s", duration(seconds));
    }
  };
  setClock();
  setInterval(tick, 1000);
  document.addEventListener("htmx:afterSettle", (event) => { if (event.detail.target?.id === "live") setClock(); });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-theme-set],[data-open],[data-close],[data-copy]");
    if (!button) return;
    if (button.dataset.themeSet) window.setTheme(button.dataset.themeSet);
    if (button.dataset.open) document.getElementById(button.dataset.open).showModal();
    if ("close" in button.dataset) button.closest("dialog").close();
    if (button.dataset.copy) {
      const text = document.getElementById(button.dataset.copy).textContent;
      await navigator.clipboard.writeText(text);
      const label = button.querySelector("[data-label]");
      const before = label.textContent;
      label.textContent = body.copied;
      setTimeout(() => { label.textContent = before; }, 1500);
    }
  });

  // The groups of the navigation: what a reader closes stays closed; on a narrow screen the others begin closed.
  const groups = [...document.querySelectorAll("[data-nav-group]")];
  const kept = document.cookie.includes("nav_closed=");
  if (!kept && window.matchMedia("(max-width: 991.98px)").matches) {
    for (const group of groups) group.open = Boolean(group.querySelector(".nav-item.active"));
  }
  document.querySelector(".sidebar .nav-item.active")?.scrollIntoView({ block: "nearest" });
  for (const group of groups) {
    group.querySelector("summary").addEventListener("click", () => setTimeout(() => {
      const closed = groups.filter((one) => !one.open).map((one) => one.dataset.navGroup).join(".");
      document.cookie = `nav_closed=${closed}; path=/; max-age=31536000; samesite=lax`;
    }));
  }

  // A part of a page that a reader folds away stays folded; on a narrow screen it begins so.
  const folded = new Set((document.cookie.match(/(?:^|; )parts_closed=([^;]*)/)?.[1] ?? "").split(".").filter(Boolean));
  const neverFolded = !document.cookie.includes("parts_closed=");
  for (const part of document.querySelectorAll("[data-kept-fold]")) {
    if (neverFolded && window.matchMedia("(max-width: 991.98px)").matches) part.open = false;
    part.querySelector("summary").addEventListener("click", () => setTimeout(() => {
      folded[part.open ? "delete" : "add"](part.dataset.keptFold);
      document.cookie = `parts_closed=${[...folded].join(".")}; path=/; max-age=31536000; samesite=lax`;
    }));
  }

  // The filters that a reader has unfolded stay so while they go on filtering the same list.
  for (const more of document.querySelectorAll(".filter-more")) {
    const place = `filters ${location.pathname}`;
    if (sessionStorage.getItem(place)) more.open = true;
    more.addEventListener("toggle", () => { if (more.open) sessionStorage.setItem(place, "open"); else sessionStorage.removeItem(place); });
  }

  // Only what is set stands in the address.
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-filters]")) return;
    for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-filters]");
    if (form && event.target.matches("select")) form.requestSubmit();
  });

  // The cards of a node are one stop of the Tab key; the arrows lead from one to the next.
  document.addEventListener("keydown", (event) => {
    const group = event.target.closest?.(".slots[role=group]");
    if (!group || (event.key !== "ArrowRight" && event.key !== "ArrowLeft")) return;
    const links = [...group.querySelectorAll("a")];
    const to = links[links.indexOf(document.activeElement) + (event.key === "ArrowRight" ? 1 : -1)];
    event.preventDefault();
    (to || (event.key === "ArrowLeft" ? group : links.at(-1)))?.focus();
  });

  // What went well goes away by itself, but not from under the pointer or the focus. A status is announced when its
  // text changes, not when the page comes with it: so the text is set once more.
  const passing = [...document.querySelectorAll("[data-passing]")];
  for (const text of document.querySelectorAll("[data-passing] p")) {
    const said = text.textContent;
    text.textContent = "";
    setTimeout(() => { text.textContent = said; }, 150);
  }
  const goAway = () => {
    for (const one of passing) if (!one.matches(":hover, :focus-within")) one.remove();
    if (document.querySelector("[data-passing]")) setTimeout(goAway, 2000);
  };
  if (passing.length) setTimeout(goAway, 8000);

  // Ctrl-K leads to the search, the arrows from there through what was found.
  document.addEventListener("keydown", (event) => {
    const field = document.getElementById("search");
    if (field && event.key === "k" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); field.focus(); field.select(); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const hits = [...document.querySelectorAll("a[data-hit]")];
    const at = hits.indexOf(document.activeElement);
    if (!hits.length || (at < 0 && ![field, document.body].includes(document.activeElement))) return;
    event.preventDefault();
    (hits[at + (event.key === "ArrowDown" ? 1 : -1)] || field).focus();
  });

  // A form that was refused is gone on with at its first wrong field.
  const wrong = document.querySelector("main [aria-invalid='true']");
  if (wrong) {
    wrong.scrollIntoView({ block: "center" });
    wrong.focus({ preventScroll: true });
  }

  let go = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input,textarea,select,[contenteditable]") || document.querySelector("dialog[open]")) return;
    const waited = Date.now() - go < 1200;
    go = 0;
    if (waited) {
      const address = body[`go${event.key.toUpperCase()}`];
      if (address) { event.preventDefault(); window.location.assign(address); }
    } else if (event.key === "g") {
      go = Date.now();
    } else if (event.key === "/") {
      const field = document.getElementById("search");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.key === "?") {
      event.preventDefault();
      document.getElementById("shortcuts")?.showModal();
    } else if (event.key === "p") {
      document.getElementById("live-toggle")?.click();
    }
  });

  // A draft of the quota editor that was sent has arrived where the editor leads to the page of its change.
  const changed = location.pathname.match(/\/clusters\/([^/]+)\/changes\/\d+\/$/);
  if (changed && /\/quota\/edit\/(\?|$)/.test(document.referrer)) {
    try {
      for (const key of Object.keys(localStorage).filter((name) => name.startsWith(`quota-draft:${changed[1]}:`))) {
        if (JSON.parse(localStorage.getItem(key)).sent) localStorage.removeItem(key);
      }
    } catch { /* a forbidden storage holds no draft */ }
  }
})();
