// Folds the rows of the quota tree: by mouse, by keyboard (the pattern of a treegrid), and fetches a level that is not
// there yet. What is folded is kept for this tab, over updates of the page too.
(() => {
  "use strict";
  const table = () => document.querySelector("table.tree");
  if (!table()) return;
  const place = `quota-tree:${window.location.pathname}`;
  const kept = new Map(JSON.parse(sessionStorage.getItem(place) || "[]"));
  const rows = () => [...table().tBodies[0].rows];
  const opened = (row) => row.getAttribute("aria-expanded") === "true";
  const keep = (row) => { kept.set(row.dataset.key, opened(row)); sessionStorage.setItem(place, JSON.stringify([...kept])); };

  // A row is shown while all that it hangs from is open.
  const show = () => {
    const visible = new Map([["", true]]);
    for (const row of rows()) {
      const above = visible.get(row.dataset.parent) ?? true;
      row.hidden = !above;
      visible.set(row.dataset.key, above && (!row.hasAttribute("aria-expanded") || opened(row)));
    }
    if (!table().querySelector("tr[tabindex='0']:not([hidden])")) focusable(rows()[0]);
  };
  const focusable = (row, focus) => {
    for (const other of table().querySelectorAll("tbody tr[tabindex='0']")) other.tabIndex = -1;
    if (!row) return;
    row.tabIndex = 0;
    if (focus) { row.focus(); row.scrollIntoView({ block: "nearest" }); }
  };

  const fetchInto = async (row, query) => {
    const parameters = new URLSearchParams(query);
    if (table().dataset.card) parameters.set("card", table().dataset.card);
    row.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`${table().dataset.branches}?${parameters}`, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const template = document.createElement("template");
      template.innerHTML = await answer.text();
      row.after(template.content);
      return true;
    } catch {
      return false;
    } finally {
      row.removeAttribute("aria-busy");
    }
  };
  const turn = async (row, open) => {
    if (!row.hasAttribute("aria-expanded") || opened(row) === open) return;
    if (open && row.dataset.branch) {
      if (!(await fetchInto(row, row.dataset.branch))) return;
      row.dataset.fetched = row.dataset.branch;
      delete row.dataset.branch;
    }
    row.setAttribute("aria-expanded", String(open));
    keep(row);
    show();
  };
  const more = async (row) => {
    const parent = rows().find((other) => other.dataset.key === row.dataset.parent);
    if (await fetchInto(row, `${parent.dataset.fetched}&after=${row.dataset.more}`)) {
      const next = row.nextElementSibling;
      row.remove();
      show();
      focusable(next, true);
    }
  };

  document.addEventListener("click", (event) => {
    const all = event.target.closest("[data-tree-all]");
    if (all) {
      for (const row of rows()) {
        if (all.dataset.treeAll === "open") { if (!row.dataset.branch) turn(row, true); } else if (row.dataset.parent !== "" || row.dataset.branch) turn(row, false);
      }
      return;
    }
    const row = event.target.closest("table.tree tbody tr");
    if (!row) return;
    focusable(row);
    if (row.dataset.more && event.target.closest("button")) more(row);
    else if (!event.target.closest("a")) turn(row, !opened(row));
  });

  document.addEventListener("keydown", (event) => {
    const row = event.target.closest?.("table.tree tbody tr");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const seen = rows().filter((other) => !other.hidden);
    const at = seen.indexOf(row);
    let to = null;
    if (event.key === "ArrowDown") to = seen[at + 1];
    else if (event.key === "ArrowUp") to = seen[at - 1];
    else if (event.key === "Home") to = seen[0];
    else if (event.key === "End") to = seen.at(-1);
    else if (event.key === "PageDown") to = seen[Math.min(at + 10, seen.length - 1)];
    else if (event.key === "PageUp") to = seen[Math.max(at - 10, 0)];
    else if (event.key === "ArrowRight") { if (row.hasAttribute("aria-expanded") && !opened(row)) turn(row, true); else to = seen[at + 1]; }
    else if (event.key === "ArrowLeft") { if (opened(row)) turn(row, false); else to = seen.find((other) => other.dataset.key === row.dataset.parent); }
    else if (event.key === "Enter" || event.key === " ") {
      if (row.dataset.more) more(row);
      else if (event.key === "Enter" && row.querySelector("a")) row.querySelector("a").click();
      else turn(row, !opened(row));
    } else return;
    event.preventDefault();
    if (to) focusable(to, true);
  });

  const restore = () => {
    for (const row of rows()) {
      if (row.hasAttribute("aria-expanded") && !row.dataset.branch && kept.has(row.dataset.key)) row.setAttribute("aria-expanded", String(kept.get(row.dataset.key)));
    }
    show();
  };
  document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target?.id === "live" || event.target.id === "live") restore(); });
  restore();
})();
