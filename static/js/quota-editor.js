// The quota editor: the grid over the figures of a cluster's tree. Edits stay in this browser until they are sent to review.
(async () => {
  "use strict";
  const sheet = document.getElementById("sheet");
  if (!sheet) return;
  const at = (id) => document.getElementById(id);
  const numbers = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 3 });
  const write = (number) => numbers.format(number);

  let data;
  try {
    const answer = await fetch(sheet.dataset.source, { credentials: "same-origin", headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    data = await answer.json();
  } catch {
    at("sheet-failed").hidden = false;
    sheet.hidden = true;
    sheet.removeAttribute("aria-busy");
    return;
  }
  const { rows, columns, words } = data;
  const say = (name, values = {}) => words[name].replace(/\{(\w+)\}/g, (_all, key) => values[key] ?? "");
  if (!rows.some((row) => row.kind !== "service")) {
    at("sheet-empty").hidden = false;
    sheet.hidden = true;
    return;
  }

  // --- figures -------------------------------------------------------------------------------------------------------
  const WIDTH = { cards: "9.25rem", cpu: "7rem", memory: "7.5rem", weight: "5.5rem", priority: "6.5rem" };
  const UNIT = { cpu: 1000, memory: 1024 };
  const MOST = { cards: 10_000_000, cpu: 2 ** 50, memory: 2 ** 40, weight: 65_535, priority: 2 ** 31 - 1 };
  const edits = rows.map(() => new Map());
  let grid = null;
  const base = (row, column) => rows[row].values[column] ?? null;
  const value = (row, column) => (edits[row].has(column) ? edits[row].get(column) : base(row, column));
  const isChanged = (row, column) => edits[row].has(column);
  const put = (row, column, figure) => {
    if (figure === base(row, column)) edits[row].delete(column); else edits[row].set(column, figure);
  };
  const shown = (column, figure) => (figure === null ? "" : write(figure / (UNIT[columns[column].kind] || 1)));
  const plain = (column, figure) => (figure === null ? "" : String(figure / (UNIT[columns[column].kind] || 1)));
  const rowNamed = new Map(rows.map((row, index) => [`${row.key}|${row.kind === "queue" ? "" : row.service}`, index]));

  const mayEdit = (row, column) => {
    const { kind } = columns[column], own = rows[row];
    if (kind === "weight" || kind === "priority") return own.kind === "queue" && own.may >= 2;
    return own.may >= 1;
  };
  const whyNot = (row, column) => {
    const { kind } = columns[column];
    if ((kind === "weight" || kind === "priority") && rows[row].kind !== "queue") return words.not_here;
    return rows[row].kind === "service" ? words.readonly : words.not_yours;
  };

  // Digits of any script, separators of thousands, and the units that people write.
  const parse = (row, column, text) => {
    const { kind } = columns[column];
    let plainText = text.normalize("NFKC").trim().replace(/[\s,_'’]/g, "").replace(/^'/, "");
    if (plainText === "" || plainText === "-" || plainText === "–") {
      if (kind === "weight" || kind === "priority") return { error: say("range", { least: kind === "weight" ? 1 : 0, most: write(MOST[kind]) }) };
      return { value: null };
    }
    let unit = 1;
    if (kind === "memory") {
      const found = /^(.*?)(mib|gib|tib|mi|gi|ti|m|g|t)$/i.exec(plainText);
      if (found) { plainText = found[1]; unit = { m: 1 / 1024, g: 1, t: 1024 }[found[2][0].toLowerCase()]; }
    } else if (kind === "cpu" && /m$/i.test(plainText)) { plainText = plainText.slice(0, -1); unit = 1 / 1000; }
    if (!/^\d+(\.\d+)?$/.test(plainText)) return { error: say("not_number", { text: text.trim() }) };
    const figure = Number(plainText) * unit * (UNIT[kind] || 1);
    if (!Number.isInteger(figure) && kind !== "memory" && kind !== "cpu") return { error: words.whole };
    const whole = Math.round(figure);
    const least = kind === "weight" ? 1 : 0;
    if (whole < least || whole > MOST[kind]) return { error: say("range", { least, most: write(MOST[kind]) }) };
    return { value: whole };
  };

  const sums = new window.QuotaSums(rows, columns, value, base);

  // --- faults: ours as one types, the server's a moment later --------------------------------------------------------
  let answered = [];
  const cellFaults = new Map();
  const place = (row, column) => row * columns.length + column;
  const describe = (fault) => {
    const row = rows[fault.at], column = columns[fault.column];
    const unit = UNIT[column.kind] || 1;
    const figures = { requested: write(fault.requested / unit), limit: write(fault.limit / unit), excess: write(fault.excess / unit), column: column.label };
    let text = row.kind === "service" ? say("over_hardware", { ...figures, service: row.title }) : say("over_holder", { ...figures, holder: row.title });
    if (fault.sibling >= 0) {
      text += ` ${say("give_way", { sibling: rows[fault.sibling].title, claim: write(fault.claim / unit), used: write((rows[fault.sibling].use[fault.column] || 0)) })}`;
    }
    return text;
  };
  const gather = () => {
    cellFaults.clear();
    const list = [];
    for (const [column, faults] of sums.faults) {
      for (const fault of faults) {
        const text = describe(fault);
        const cells = fault.cells.length ? fault.cells : [fault.at];
        for (const row of cells) cellFaults.set(place(row, column), text);
        list.push({ row: cells[0], column, text });
      }
    }
    for (const error of answered) {
      const where = placeOf(error);
      // The same sum, told by the server: ours says it with names.
      const known = where && error.requested != null && (sums.faults.get(where.column) || []).some((fault) => rows[fault.at].service === rows[where.row].service);
      if (known) continue;
      if (where) cellFaults.set(place(where.row, where.column), error.detail);
      list.push({ row: where?.row ?? -1, column: where?.column ?? 0, text: error.detail });
    }
    return list;
  };
  const unescape = (step) => step.replaceAll("~1", "/").replaceAll("~0", "~");
  const pathColumn = new Map(columns.map((column, index) => [column.path.join("\n"), index]));
  const placeOf = ({ object, field }) => {
    const steps = (field || "").split("/").slice(1).map(unescape);
    const service = steps[0] === "quota" ? steps[1] : "";
    const row = rowNamed.get(`${object}|${service}`);
    const column = pathColumn.get((service ? steps.slice(2) : steps).join("\n"));
    return row === undefined || column === undefined ? null : { row, column };
  };

  // --- the grid ------------------------------------------------------------------------------------------------------
  // What is not set counts as none for a queue, and for who has a quota of any other card.
  const wasZero = (row, column) => columns[column].kind === "cards" && (rows[row].kind === "queue" || sums.limitedBase[row]);
  const twice = (row) => rows[row].kind !== "queue";
  let view = rows.map((_row, index) => index);
  const indexOf = new Map();

  const cell = (index, column) => {
    const row = view[index], own = rows[row], kind = columns[column].kind;
    const figure = value(row, column), changed = isChanged(row, column);
    const fault = cellFaults.get(place(row, column));
    const readonly = !mayEdit(row, column);
    const used = own.use[column] || 0;
    const states = [kind];
    let text = shown(column, figure), note = "", title = columns[column].title;
    const summed = kind === "cards" || kind === "cpu" || kind === "memory";
    const unit = UNIT[kind] || 1;
    if (summed && twice(row)) {
      const given = sums.given[row].get(column) || 0, limit = sums.limit(row, column);
      if (limit === null) { text = ""; note = given ? say("given", { n: write(given / unit) }) : ""; states.push("unlimited"); } else {
        text = own.kind === "service" ? say("given_of", { given: write(given / unit), limit: write(limit / unit) }) : write(limit / unit);
        if (own.kind !== "service" && (given || limit)) note = say("given", { n: write(given / unit) });
        if (given > limit) states.push("over");
        else if (!limit && !given) states.push("zero");
      }
    } else if (kind === "cards") {
      if (figure === null) text = "0";
      if (used) note = say("used", { n: write(used) });
      if (!figure && !used) states.push("zero");
      if (used > (figure ?? 0)) states.push("below");
    } else if (figure === null && summed) states.push("unlimited");
    if (text === "" && states.includes("unlimited") && own.kind !== "service") text = "–";
    if (readonly) states.push("fixed");
    if (changed) states.push("changed");
    if (fault) states.push("fault");
    if (fault) title = fault;
    else if (states.includes("below")) title = say("below_use", { n: write(used) });
    const before = changed ? `${shown(column, base(row, column)) || (wasZero(row, column) ? "0" : "–")} →` : "";
    if (changed && own.kind !== "service") note = used && kind === "cards" && own.kind === "queue" ? note : "";
    return { text, note, before, state: states.join(" "), title, readonly, invalid: Boolean(fault) };
  };

  const nameCell = (index, el) => {
    const row = view[index], own = rows[row];
    if (el.dataset.row === String(row) && el.dataset.changed === String(edits[row].size)) return;
    el.dataset.row = row;
    el.dataset.changed = edits[row].size;
    el.replaceChildren();
    const name = document.createElement("span");
    name.className = "sheet-title";
    name.textContent = own.title;
    name.title = own.kind === "queue" && own.line ? `${own.title} (${own.line})` : own.title;
    el.append(name);
    if (own.kind === "tenant" || own.kind === "project") {
      const about = document.createElement("span");
      about.className = "sheet-about";
      about.textContent = words[own.kind];
      el.append(about);
    }
    if (edits[row].size) {
      const mark = document.createElement("span");
      mark.className = "sheet-mark";
      mark.textContent = String(edits[row].size);
      mark.title = say("changes", { n: edits[row].size });
      el.append(mark);
    }
  };

  const touched = (changed) => {
    const before = new Set(cellFaults.keys());
    const wide = sums.update(new Set(changed.map(({ column }) => column)));
    const list = gather();
    for (const key of [...before, ...cellFaults.keys()]) wide.add(key % columns.length);
    grid.repaint(wide);
    tell(list);
    status();
    keep();
    askServer();
  };

  const model = {
    columns: columns.map((column) => ({ ...column, width: WIDTH[column.kind] })),
    corner: words.corner,
    count: () => view.length,
    name: (index) => rows[view[index]].title,
    rowKey: (index) => view[index],
    indexOf: (row) => indexOf.get(row) ?? -1,
    rowClass: (index) => `kind-${rows[view[index]].kind} level-${rows[view[index]].level} of-${rows[view[index]].service}`,
    nameCell,
    cell,
    raw: (index, column) => plain(column, value(view[index], column)),
    get: (index, column) => value(view[index], column),
    parse: (index, column, text) => parse(view[index], column, text),
    set: (changes) => {
      for (const change of changes) put(change.row, change.column, change.value);
      touched(changes);
    },
    // What is being typed is tried out on the sums without being kept.
    typed: (index, column, figure) => {
      const row = view[index], had = edits[row].has(column) ? edits[row].get(column) : undefined;
      put(row, column, figure);
      sums.update([column]);
      const fault = (sums.faults.get(column) || []).find((found) => found.cells.includes(row));
      const used = rows[row].use[column] || 0;
      const below = columns[column].kind === "cards" && rows[row].kind === "queue" && used > (figure ?? 0);
      const first = rows[row].kind !== "queue" && columns[column].kind === "cards" && figure !== null && !sums.limitedBase[row];
      const seen = {
        error: fault ? describe(fault) : "",
        warning: below ? say("below_use", { n: write(used) }) : first ? say("first_limit", { holder: rows[row].title }) : "",
      };
      if (had === undefined) edits[row].delete(column); else edits[row].set(column, had);
      sums.update([column]);
      return seen;
    },
    told: (seen) => message(seen?.error || seen?.warning || "", seen?.error ? "error" : seen?.warning ? "warning" : ""),
    selected: () => status(),
    refused: (index, column) => message(whyNot(view[index], column), "warning"),
    written: ({ skipped, fault }) => {
      if (skipped) message(say("skipped", { n: skipped, why: fault || words.fixed }), "warning");
    },
    copied: (n) => message(say("copied", { n }), ""),
    leave: () => at("review").focus(),
    // A table with names of columns above and of rows in front is put where the names say.
    named: (table) => {
      if (table.length < 2 || table[0].length < 2) return null;
      const labels = new Map();
      columns.forEach((column, index) => { labels.set(column.title.toLowerCase(), index); labels.set(column.label.toLowerCase(), index); });
      const heads = table[0].map((text) => labels.get(text.trim().toLowerCase()));
      if (heads.filter((found) => found !== undefined).length < 1 || heads[0] !== undefined) return null;
      const names = new Map();
      // A project and its queue may have one name, and so may projects of two tenants: our own files say the key too.
      rows.forEach((row, index) => { for (const key of [`${row.service} ${row.key}`, `${row.service}/${row.name}`, row.name]) if (!names.has(key)) names.set(key, index); });
      const [serviceAt, keyAt] = ["service_type", "key"].map((head) => table[0].findIndex((text) => text.trim() === head));
      const wanted = [];
      for (const line of table.slice(1)) {
        const name = line[0].trim();
        const service = line[serviceAt]?.trim(), key = line[keyAt]?.trim();
        const row = key ? names.get(`${service} ${key}`) : names.get(service ? `${service}/${name}` : name) ?? names.get(name);
        if (row === undefined || !indexOf.has(row)) continue;
        heads.forEach((column, place_) => { if (column !== undefined && line[place_] !== undefined) wanted.push({ row: indexOf.get(row), column, text: line[place_].trim() }); });
      }
      return wanted.length ? wanted : null;
    },
  };

  // --- words below the grid ------------------------------------------------------------------------------------------
  const message = (text, tone) => {
    at("sheet-message").textContent = text;
    at("sheet-message").dataset.tone = tone;
  };
  const changedCells = () => edits.reduce((n, row) => n + row.size, 0);
  const status = () => {
    if (!grid || !view.length) return;
    const { row: index, column } = grid.active;
    const row = view[index], own = rows[row];
    const parts = [`${own.title} · ${columns[column].title}`];
    const figure = value(row, column);
    const rightNow = base(row, column);
    if (own.kind !== "service") parts.push(say("now", { now: shown(column, rightNow) || (wasZero(row, column) ? "0" : words.no_limit) }));
    if (columns[column].kind === "cards") parts.push(say("in_use", { n: write(own.use[column] || 0) }));
    at("sheet-where").textContent = parts.join(", ");
    const fault = cellFaults.get(place(row, column));
    const used = own.use[column] || 0;
    if (fault) message(fault, "error");
    else if (columns[column].kind === "cards" && own.kind === "queue" && isChanged(row, column) && used > (figure ?? 0)) message(say("below_use", { n: write(used) }), "warning");
    else if (own.kind !== "queue" && isChanged(row, column) && columns[column].kind === "cards" && sums.limitedNow[row] && !sums.limitedBase[row]) message(say("first_limit", { holder: own.title }), "warning");
    else message("", "");
    let n = 0, total = 0;
    for (const picked of grid.cells()) {
      n += 1;
      if (n > 20_000) break;
      total += (value(view[picked.row], picked.column) || 0) / (UNIT[columns[picked.column].kind] || 1);
    }
    at("sheet-sum").textContent = n > 1 ? say("sum", { n: write(n), sum: write(total) }) : "";
  };
  const tell = (list) => {
    const n = changedCells();
    at("count-changed").textContent = n ? say("changes", { n }) : words.no_changes;
    at("count-errors").textContent = list.length ? say(list.length === 1 ? "error" : "errors", { n: list.length }) : words.no_errors;
    at("count-errors").dataset.tone = list.length ? "error" : "";
    at("review").disabled = !n;
    at("undo").disabled = !grid.done.length;
    at("redo").disabled = !grid.undone.length;
    at("discard").disabled = !n;
    const panel = at("faults");
    panel.hidden = !list.length;
    const items = list.slice(0, 50).map((fault) => {
      const item = document.createElement("li");
      const text = document.createElement("span");
      text.textContent = fault.text;
      item.append(text);
      if (fault.row >= 0) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "btn btn-sm";
        button.textContent = words.go;
        button.addEventListener("click", () => go(fault.row, fault.column));
        item.append(button);
      }
      return item;
    });
    at("fault-list").replaceChildren(...items);
  };
  const go = (row, column) => {
    if (!indexOf.has(row)) { at("filter-text").value = ""; at("filter-service").value = ""; at("filter-show").value = ""; filter(); }
    grid.select(indexOf.get(row), column);
    sheet.focus();
  };

  // --- filter --------------------------------------------------------------------------------------------------------
  const filter = () => {
    const text = at("filter-text").value.trim().toLowerCase(), service = at("filter-service").value, show = at("filter-show").value;
    const wanted = rows.map((row, index) => {
      if (service && row.service !== service) return false;
      if (show === "changed" && !edits[index].size) return false;
      if (show === "errors" && !columns.some((_column, column) => cellFaults.has(place(index, column)))) return false;
      if (show === "used" && !Object.keys(row.use).length) return false;
      return !text || row.title.toLowerCase().includes(text) || row.name.toLowerCase().includes(text) || row.line?.toLowerCase().includes(text);
    });
    // What stands above is kept, so that sums are seen; what stands below a tenant that is asked for, too.
    const kept = [...wanted];
    rows.forEach((row, index) => { if (text && !show && row.parent >= 0 && kept[row.parent] && rows[row.parent].kind !== "service" && (!service || row.service === service)) kept[index] = true; });
    for (let index = rows.length - 1; index >= 0; index -= 1) if (kept[index] && rows[index].parent >= 0) kept[rows[index].parent] = true;
    view = [];
    indexOf.clear();
    kept.forEach((yes, index) => { if (yes) { indexOf.set(index, view.length); view.push(index); } });
    at("count-rows").textContent = say("rows", { n: write(view.length), all: write(rows.length) });
    grid.refresh();
  };

  // --- the draft of this browser -------------------------------------------------------------------------------------
  const keyOfDraft = sheet.dataset.draft;
  const stored = () => rows.flatMap((row, index) => [...edits[index]].map(([column, figure]) => [row.key, row.kind === "queue" ? "" : row.service, columns[column].key, figure]));
  let keeping = 0;
  const keepNow = () => {
    clearTimeout(keeping);
    try {
      if (changedCells()) localStorage.setItem(keyOfDraft, JSON.stringify({ version: data.version, at: Date.now(), cells: stored() }));
      else localStorage.removeItem(keyOfDraft);
    } catch { /* a full or forbidden storage: the page still warns before it is left */ }
  };
  const keep = () => { clearTimeout(keeping); keeping = setTimeout(keepNow, 300); };
  const restore = () => {
    let draft = null;
    try { draft = JSON.parse(localStorage.getItem(keyOfDraft) || "null"); } catch { /* nothing that can be read */ }
    if (!draft?.cells?.length) return null;
    const columnNamed = new Map(columns.map((column, index) => [column.key, index]));
    let n = 0;
    for (const [key, service, name, figure] of draft.cells) {
      const row = rowNamed.get(`${key}|${service}`), column = columnNamed.get(name);
      if (row === undefined || column === undefined || !mayEdit(row, column)) continue;
      put(row, column, figure);
      n += isChanged(row, column) ? 1 : 0;
    }
    return n ? { n, moved: draft.version !== data.version, at: draft.at } : null;
  };

  // --- what is sent: a merge patch over the documents ----------------------------------------------------------------
  const figureOut = (column, figure) => (figure === null ? null : columns[column].kind === "memory" ? figure * 2 ** 20 : figure);
  const lay = (target, path, figure) => {
    let into = target;
    for (const step of path.slice(0, -1)) into = into[step] ??= {};
    into[path.at(-1)] = figure;
  };
  const patch = () => {
    const found = structuredClone(rest);
    rows.forEach((row, index) => { for (const [column, figure] of edits[index]) lay(found, [row.key, ...row.path, ...columns[column].path], figureOut(column, figure)); });
    return found;
  };
  // The draft that is gone on with: what the grid shows goes into its cells, the rest is kept as it is.
  const rest = structuredClone(data.edits);
  const takeOver = () => {
    rows.forEach((row, index) => {
      if (!rest[row.key]) return;
      columns.forEach((column, number) => {
        let from = rest[row.key];
        const path = [...row.path, ...column.path];
        for (const step of path.slice(0, -1)) from = from?.[step];
        if (!from || !(path.at(-1) in from)) return;
        const figure = from[path.at(-1)];
        put(index, number, figure === null ? null : column.kind === "memory" ? Math.round(figure / 2 ** 20) : figure);
        delete from[path.at(-1)];
      });
    });
    const prune = (map) => { for (const [key, entry] of Object.entries(map)) if (entry && typeof entry === "object" && !Array.isArray(entry)) { prune(entry); if (!Object.keys(entry).length) delete map[key]; } };
    prune(rest);
  };

  // --- the server's word ---------------------------------------------------------------------------------------------
  let asking = 0, asked = null;
  const token = () => document.querySelector("#review-form [name=csrfmiddlewaretoken]").value;
  const askServer = () => {
    clearTimeout(asking);
    asked?.abort();
    answered = [];
    const note = at("count-checked");
    if (!changedCells()) { note.textContent = ""; return; }
    note.textContent = words.checking;
    asking = setTimeout(async () => {
      asked = new AbortController();
      try {
        const answer = await fetch(sheet.dataset.check, {
          method: "POST", credentials: "same-origin", signal: asked.signal, body: JSON.stringify(patch()),
          headers: { "Content-Type": "application/json", "X-CSRFToken": token() },
        });
        if (!answer.ok) throw new Error(String(answer.status));
        answered = (await answer.json()).errors;
        note.textContent = words.checked;
        const list = gather();
        grid.repaint();
        tell(list);
        if (!grid.editor) status();
      } catch (error) {
        if (error.name !== "AbortError") note.textContent = words.unchecked;
      }
    }, 600);
  };

  // --- the buttons ---------------------------------------------------------------------------------------------------
  takeOver();
  const back = restore();
  grid = new window.TideGrid(sheet, model);
  window.quotaGrid = grid;
  filter();
  sums.update(columns.map((_column, index) => index));
  tell(gather());
  grid.repaint();
  status();
  if (back) {
    const when = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "short", timeStyle: "short" }).format(back.at);
    at("draft-text").textContent = say(back.moved ? "restored_moved" : "restored", { when, n: back.n });
    at("draft-note").hidden = false;
  }
  if (changedCells()) askServer();
  sheet.removeAttribute("aria-busy");
  sheet.dataset.state = "ready";

  at("undo").addEventListener("click", () => { grid.undo(); sheet.focus(); });
  at("redo").addEventListener("click", () => { grid.redo(); sheet.focus(); });
  at("fill-down").addEventListener("click", () => { grid.fill(true); sheet.focus(); });
  at("fill-right").addEventListener("click", () => { grid.fill(false); sheet.focus(); });
  at("set-form").addEventListener("submit", (event) => {
    event.preventDefault();
    grid.setSelected(at("set-value").value);
    at("set-value").value = "";
    sheet.focus();
  });
  at("discard").addEventListener("click", () => at("discard-dialog").showModal());
  at("discard-now").addEventListener("click", () => {
    at("discard-dialog").close();
    const changes = rows.flatMap((_row, index) => [...edits[index].keys()].map((column) => ({ row: index, column, before: value(index, column), after: base(index, column) })));
    grid.done.push(changes);
    grid.undone = [];
    model.set(changes.map(({ row, column, after }) => ({ row, column, value: after })));
    at("draft-note").hidden = true;
    sheet.focus();
  });
  at("draft-close").addEventListener("click", () => { at("draft-note").hidden = true; sheet.focus(); });
  let filtering = 0;
  at("filter-text").addEventListener("input", () => { clearTimeout(filtering); filtering = setTimeout(filter, 120); });
  at("filter-text").addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); clearTimeout(filtering); filter(); sheet.focus(); } });
  for (const id of ["filter-service", "filter-show"]) at(id).addEventListener("change", filter);

  at("export-csv").addEventListener("click", () => {
    const lines = [["name", "service_type", "kind", ...columns.map((column) => column.title), "key"]];
    for (const row of view) {
      if (rows[row].kind === "service") continue;
      lines.push([rows[row].name, rows[row].service, rows[row].kind, ...columns.map((_column, column) => plain(column, value(row, column))), rows[row].key]);
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", window.Papa.unparse(lines, { escapeFormulae: true })], { type: "text/csv" }));
    link.download = sheet.dataset.file;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  at("import-csv").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    // Commas, semicolons or tabs: the delimiter is found in the file.
    const cells = window.Papa.parse((await file.text()).replace(/^\ufeff/, ""), { skipEmptyLines: true }).data;
    if (cells.length) grid.pasteTable(cells);
    event.target.value = "";
    sheet.focus();
  });

  let sent = false;
  addEventListener("beforeunload", (event) => { keepNow(); if (!sent && changedCells()) event.preventDefault(); });
  at("review-form").addEventListener("submit", () => {
    grid.commit();
    at("review-edits").value = JSON.stringify(patch());
    sent = true;
    clearTimeout(keeping);
    try { localStorage.setItem(`${keyOfDraft}:sent`, localStorage.getItem(keyOfDraft) || ""); localStorage.removeItem(keyOfDraft); } catch { /* see above */ }
  });
})();
