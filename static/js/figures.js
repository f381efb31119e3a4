// Draws each figure from the JSON that the server makes, in the theme of the page; a table twin is filled on demand.
(() => {
  "use strict";
  const shown = new Map();
  // From where each drawn figure came, and its ETag: where nothing moved the server sends nothing.
  const kept = new Map();

  const address = (el) => {
    const query = new URLSearchParams(el.dataset.query);
    query.set("theme", document.documentElement.dataset.bsTheme);
    return `${el.dataset.figure}?${query}`;
  };

  const note = (el, text, state) => {
    el.dataset.state = state;
    if (shown.has(el.id)) window.Plotly.purge(el);
    shown.delete(el.id);
    const div = document.createElement("div");
    div.className = "waiting-note";
    div.textContent = text;
    el.replaceChildren(div);
  };

  // A part that knows a filter of the page's table shows it.
  const follow = (event) => {
    const filter = event.points[0]?.customdata;
    if (typeof filter === "string" && filter.startsWith("?")) window.location.search = filter;
  };

  // What is folded away has no room to be drawn in: it is drawn when the reader unfolds it.
  const inFold = (el) => el.closest("details:not([open])");

  // In a narrow window what is named beside the bars is named above them, and their room is higher.
  const fit = (el, layout) => {
    const beside = layout.showlegend && layout.legend?.orientation === "v";
    const narrow = beside && window.matchMedia("(max-width: 640px)").matches;
    el.classList.toggle("named-above", Boolean(narrow));
    if (narrow) layout.legend = { ...layout.legend, orientation: "h", x: 0, y: 1.02, yanchor: "bottom" };
    return layout;
  };

  const draw = async (el) => {
    if (inFold(el)) { if (!shown.has(el.id)) el.dataset.state = "folded"; return; }
    try {
      const from = address(el);
      const known = kept.get(el.id);
      const headers = { Accept: "application/json" };
      if (known?.from === from && shown.has(el.id)) headers["If-None-Match"] = known.etag;
      const answer = await fetch(from, { headers, credentials: "same-origin" });
      if (answer.status === 304) return;
      if (!answer.ok) throw new Error(String(answer.status));
      kept.set(el.id, { from, etag: answer.headers.get("ETag") || "" });
      const figure = await answer.json();
      if (!figure.data.length) { note(el, el.dataset.empty, "empty"); return; }
      const first = !shown.has(el.id);
      if (first) el.replaceChildren();
      shown.set(el.id, true);
      await window.Plotly.react(el, figure.data, fit(el, figure.layout), { displayModeBar: false, responsive: true, locale: "en" });
      if (first) el.on("plotly_click", follow);
      el.dataset.state = "drawn";
    } catch (error) {
      if (!shown.has(el.id)) note(el, el.dataset.failed, "failed");
    }
  };

  const figures = () => document.querySelectorAll("[data-figure]");
  const drawAll = () => { for (const el of figures()) draw(el); };

  const fillTable = async (key) => {
    const el = document.getElementById(key);
    const table = document.getElementById(`${key}-table`);
    const answer = await fetch(`${el.dataset.figure}?${el.dataset.query}&format=table`, { credentials: "same-origin" });
    if (answer.ok) table.replaceChildren(document.createRange().createContextualFragment(await answer.text()));
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-table-for]");
    if (!button) return;
    const table = document.getElementById(`${button.dataset.tableFor}-table`);
    if (table.hidden) await fillTable(button.dataset.tableFor);
    table.hidden = !table.hidden;
    button.setAttribute("aria-expanded", String(!table.hidden));
  });

  document.addEventListener("change", (event) => {
    const key = event.target.dataset?.figureChoice;
    if (!key) return;
    const el = document.getElementById(key);
    const query = new URLSearchParams(el.dataset.query);
    query.set("card", event.target.value);
    el.dataset.query = query.toString();
    const { param } = event.target.dataset;
    if (param) {  // what is looked at can be sent to a colleague
      const page = new URL(location.href);
      if (event.target.value) page.searchParams.set(param, event.target.value);
      else page.searchParams.delete(param);
      history.replaceState(history.state, "", page);
    }
    const csv = document.querySelector(`[data-csv-for="${key}"]`);
    query.set("format", "csv");
    csv.href = `${el.dataset.figure}?${query}`;
    draw(el);
    if (!document.getElementById(`${key}-table`).hidden) fillTable(key);
  });

  let last = Date.now();
  document.addEventListener("refetch", () => {
    if (Date.now() - last < 5000) return;
    last = Date.now();
    drawAll();
  });
  document.addEventListener("themechange", drawAll);
  document.addEventListener("toggle", (event) => { if (event.target.open) for (const el of event.target.querySelectorAll("[data-figure]")) draw(el); }, true);
  drawAll();
})();
