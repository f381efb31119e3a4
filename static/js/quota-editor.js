// The quota editor: the grid over the figures of a cluster's tree. Edits stay in this browser until they are sent to review.
(async () => {
  "use strict";
  const sheet = document.getElementById("sheet");
  if (!sheet) return;
  const at = (id) => document.getElementById(id);

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
  const WIDTH = { cards: "9.25rem", cpu: "8.25rem", memory: "9.5rem", weight: "5.5rem", priority: "6.5rem" };
  const figures = new window.QuotaFigures(columns, say);
  const { write } = figures;
  const shown = (column, figure) => figures.shown(column, figure), plain = (column, figure) => figures.plain(column, figure);
  const edits = rows.map(() => new Map());
  let grid = null;
  const base = (row, column) => rows[row].values[column] ?? null;
  const value = (row, column) => (edits[row].has(column) ? edits[row].get(column) : base(row, column));
  const isChanged = (row, column) => edits[row].has(column);
  // What was put in here and another person has applied meanwhile: an edit again, once that figure is changed again.
  const agreed = rows.map(() => new Map());
  const put = (row, column, figure) => {
    agreed[row].delete(column);
    if (figure === base(row, column)) edits[row].delete(column); else edits[row].set(column, figure);
  };
  const putAgain = (row, column, figure) => {
    put(row, column, figure);
    if (!isChanged(row, column)) agreed[row].set(column, figure);
  };
  const rowNamed = new Map(rows.map((row, index) => [`${row.key}|${row.kind === "queue" ? "" : row.service}`, index]));

  const mayEdit = (row, column) => {
    const { kind } = columns[column], own = rows[row];
    if (kind === "weight" || kind === "priority") return own.kind === "queue" && own.may >= 2;
    // Where there is no limit nothing can be asked for.
    return own.may >= 1 && !(own.asks && limitOf(row, column) === null);
  };
  // What a tenant's own admin has, and may ask to be raised.
  const limitOf = (row, column) => base(row, column) ?? (columns[column].kind === "cards" && sums.limitedBase[row] ? 0 : null);
  const asksFor = (row, column) => (rows[row].asks && isChanged(row, column) ? value(row, column) - limitOf(row, column) : 0);
  const whyNot = (row, column) => {
    const { kind } = columns[column];
    if (rows[row].asks && kind !== "weight" && kind !== "priority") return words.asks_nothing;
    if ((kind === "weight" || kind === "priority") && rows[row].kind !== "queue") return words.not_here;
    return rows[row].kind === "service" ? words.readonly : words.not_yours;
  };

  let sums = new window.QuotaSums(rows, columns, value, base);

  // --- faults: ours as one types, the server's a moment later --------------------------------------------------------
  let answered = [];
  // Errors that the server found and did not list; whether all of its errors are such that a request may be sent with.
  let beyond = 0, sendable = false;
  const cellFaults = new Map();
  const place = (row, column) => row * columns.length + column;
  const describe = (fault) => {
    const row = rows[fault.at], column = columns[fault.column];
    const unit = figures.unit(fault.column);
    const told = { requested: write(fault.requested / unit), limit: write(fault.limit / unit), excess: write(fault.excess / unit), column: column.label };
    let text = row.kind === "service" ? say("over_hardware", { ...told, service: row.title, rule: ruleOf(fault.at, fault.column) }) : say("over_holder", { ...told, holder: row.title });
    if (fault.above >= 0 && fault.room < fault.excess && row.may >= 1 && !row.asks) {
      text += ` ${say(fault.room > 0 ? "raise_short" : "raise_none", { ...told, holder: row.title, above: rows[fault.above].title, room: write(fault.room / unit) })}`;
    }
    if (row.asks && limitOf(fault.at, fault.column) !== null && value(fault.at, fault.column) >= limitOf(fault.at, fault.column)) text += ` ${say("ask_here", { ...told, holder: row.title })}`;
    else if (row.kind !== "service" && row.may < 1) text += ` ${say("ask_for", { ...told, holder: row.title })}`;
    return text;
  };
  const mendOf = (fault) => sums.mend(fault, (row, up) => mayEdit(row, fault.column) && (up || !rows[row].asks));
  const mendWords = ({ column }, steps) => {
    const told = steps.map(({ row, value: to }) => ({ name: rows[row].title, from: shown(column, sums.limit(row, column)), to: shown(column, to) }));
    const [one, other] = told, up = steps.length === 1 && steps[0].value > sums.limit(steps[0].row, column);
    return say(other ? "mend_both" : up ? "mend_raise" : "mend_lower", { ...one, other: other?.name, other_from: other?.from, other_to: other?.to });
  };
  // How the limit over all tenants comes about.
  const ruleOf = (row, column) => {
    const { hardware, ratio } = rows[row], have = hardware?.[column];
    if (have === undefined) return "";
    const unit = figures.unit(column), limit = sums.limit(row, column);
    return say("rule", { hardware: write(have / unit), ratio: ratio.toFixed(2).replace(/0$/, ""), limit: write(limit / unit) });
  };
  const gather = () => {
    cellFaults.clear();
    const list = [];
    for (const [column, faults] of sums.faults) {
      for (const fault of faults) {
        const text = describe(fault);
        const cells = fault.cells.length ? fault.cells : [fault.at];
        for (const row of cells) cellFaults.set(place(row, column), text);
        // The row that the sentence names; the sum over all tenants is no cell to edit.
        list.push({ row: rows[fault.at].kind === "service" ? cells[0] : fault.at, column, text, fault });
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
    const unit = figures.unit(column);
    if (summed && twice(row)) {
      const given = sums.given[row].get(column) || 0, limit = sums.limit(row, column);
      if (limit === null) { text = ""; note = given ? say("given", { n: write(given / unit) }) : ""; states.push("unlimited"); } else {
        text = own.kind === "service" ? say("given_of", { given: write(given / unit), limit: write(limit / unit) }) : write(limit / unit);
        if (own.kind === "service") note = ratioNote(row, column); else if (given || limit) note = say("given", { n: write(given / unit) });
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
    const turned = own.kind === "queue" && !changed ? own.effective?.[column] : undefined;
    let before = changed ? `${shown(column, base(row, column)) || (wasZero(row, column) ? "0" : "–")} →` : "";
    if (turned !== undefined) { before = shown(column, figure) || "0"; text = write(turned); states.push("tide"); title = say("tide", { now: text, base: before }); }
    if (readonly) states.push("fixed");
    if (changed) states.push("changed");
    if (fault) states.push("fault");
    if (fault) title = fault;
    else if (states.includes("below")) title = say("below_use", { n: write(used) });
    else if (own.kind === "service" && summed) title = `${title}: ${ruleOf(row, column)}`;
    if (asksFor(row, column)) { states.push("asks"); if (!fault) title = say("asks_told", { n: write(asksFor(row, column) / unit), holder: own.title }); }
    if (changed && own.kind !== "service") note = used && kind === "cards" && own.kind === "queue" ? note : "";
    return { text, note, before, state: states.join(" "), title, readonly, invalid: Boolean(fault) };
  };

  // A ratio other than 1 stands in the cell; the whole rule is below the grid and in the cell's title.
  const ratioNote = (row, column) => (rows[row].ratio !== 1 && rows[row].hardware?.[column] !== undefined ? `${write(rows[row].hardware[column] / figures.unit(column))} × ${rows[row].ratio}` : "");

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
      // Without the rows of the service types above it, a tenant says of which its figures are.
      about.textContent = own.kind === "tenant" && own.parent < 0 ? words[own.service] : words[own.kind];
      el.append(about);
    }
    if (own.asks && edits[row].size) {
      const asks = document.createElement("span");
      asks.className = "sheet-asks";
      asks.textContent = words.request;
      asks.title = words.asks;
      el.append(asks);
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
    [answered, beyond, sendable] = [[], 0, false];  // what the server said was about other figures
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
    get: (row, column) => value(row, column),
    parse: (row, column, text) => {
      const parsed = figures.parse(column, text), least = rows[row].asks ? limitOf(row, column) : null;
      if (least === null || parsed.error || (parsed.value !== null && parsed.value >= least)) return parsed;
      return { error: say("asks_more", { n: write(least / figures.unit(column)) }) };
    },
    fixed: (row, column) => (mayEdit(row, column) ? "" : whyNot(row, column)),
    beyond: (below) => (below ? words.below_grid : words.right_of_grid),
    // A filter never hides what was put in: these rows stay in sight until the filter is set anew.
    show: (keys) => {
      const hidden = keys.filter((row) => !indexOf.has(row));
      if (!hidden.length) return;
      for (const row of hidden) also.add(row);
      filter({ again: true });
    },
    set: (changes) => {
      for (const change of changes) put(change.row, change.column, change.value);
      touched(changes);
    },
    // What is being typed is tried out on the sums without being kept.
    typed: (index, column, figure) => {
      const row = view[index], had = edits[row].get(column), wished = agreed[row].get(column);
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
      if (wished !== undefined) agreed[row].set(column, wished);
      sums.update([column]);
      return seen;
    },
    told: (seen) => { typing(seen?.error || ""); message(seen?.error || seen?.warning || "", seen?.error ? "error" : seen?.warning ? "warning" : ""); },
    selected: () => { typing(""); status(); },
    opened: () => { tellNews(); refresh(); },
    closed: () => refresh(),
    refused: (index, column) => message(whyNot(view[index], column), "warning"),
    written: (done) => {
      typing("");
      const given = done.source === "paste" || done.source === "file";
      if (done.left.length || (given && done.step.length > 1) || done.source === "file") intake.report(done);
      if (done.left.length) message(done.left.length === 1 ? done.left[0].why : say("skipped", { n: done.left.length }), "warning");
    },
    copied: (n) => message(say(n === 1 ? "copied_one" : "copied", { n }), ""),
    leave: () => at("review").focus(),
    read: (text) => read(text, "paste"),
    named: (lines) => intake.named(lines),
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
    const card = columns[column].kind === "cards";
    const parts = [`${own.title} · ${card ? columns[column].label : columns[column].title}`];
    at("sheet-where").title = card ? columns[column].title : "";
    const figure = value(row, column);
    const rightNow = base(row, column);
    if (own.kind !== "service") parts.push(say("now", { now: shown(column, rightNow) || (wasZero(row, column) ? "0" : words.no_limit) }));
    const rule = own.kind === "service" ? ruleOf(row, column) : "";
    if (rule) parts.push(rule);
    if (own.effective?.[column] !== undefined) parts.push(say("tide_now", { n: write(own.effective[column]) }));
    if (columns[column].kind === "cards") parts.push(say("in_use", { n: write(own.use[column] || 0) }));
    at("sheet-where").textContent = parts.join(" · ");
    const fault = cellFaults.get(place(row, column));
    const used = own.use[column] || 0;
    if (fault) message(fault, "error");
    else if (asksFor(row, column)) message(say("asks_told", { n: write(asksFor(row, column) / figures.unit(column)), holder: own.title }), "warning");
    else if (columns[column].kind === "cards" && own.kind === "queue" && isChanged(row, column) && used > (figure ?? 0)) message(say("below_use", { n: write(used) }), "warning");
    else if (own.kind !== "queue" && isChanged(row, column) && columns[column].kind === "cards" && sums.limitedNow[row] && !sums.limitedBase[row]) message(say("first_limit", { holder: own.title }), "warning");
    else message("", "");
    let n = 0, total = 0;
    for (const picked of grid.cells()) {
      n += 1;
      if (n > 20_000) break;
      total += (value(view[picked.row], picked.column) || 0) / figures.unit(picked.column);
    }
    at("sheet-sum").textContent = n > 1 ? say("sum", { n: write(n), sum: write(total) }) : "";
  };
  // What is being typed and means nothing yet counts as an error too, though it is in no cell.
  let faultCount = 0, typedWrong = "";
  const typing = (text) => { typedWrong = text; count(); };
  const count = () => {
    const n = faultCount + (typedWrong ? 1 : 0);
    at("count-errors").textContent = n ? say(n === 1 ? "error" : "errors", { n }) : words.no_errors;
    at("count-errors").dataset.tone = n ? "error" : "";
    at("count-errors").toggleAttribute("href", faultCount > 0);
    if (faultCount) at("count-errors").href = "#faults";
    const held = Boolean(typedWrong || (faultCount && !sendable));
    at("review").setAttribute("aria-disabled", String(held));
    at("review-why").hidden = !held;
  };
  const tell = (list) => {
    const n = changedCells();
    const asking = rows.reduce((sum, row, index) => sum + (row.asks ? edits[index].size : 0), 0);
    at("count-changed").textContent = n ? `${say("changes", { n })}${asking ? ` · ${say("asks_count", { n: asking })}` : ""}` : words.no_changes;
    at("export-with").textContent = n ? words.export_with : "";
    faultCount = list.length + beyond;
    count();
    at("review").disabled = !n;
    at("undo").disabled = !grid.done.length;
    at("redo").disabled = !grid.undone.length;
    at("discard").disabled = !n;
    const panel = at("faults");
    panel.hidden = !list.length;
    const listed = list.slice(0, 50);
    const items = listed.map((fault) => {
      const item = document.createElement("li");
      const text = document.createElement("span");
      text.textContent = fault.text;
      item.append(text);
      const add = (label, act) => {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "btn btn-sm";
        button.textContent = label;
        button.addEventListener("click", act);
        item.append(button);
      };
      const steps = fault.fault ? mendOf(fault.fault) : [];
      if (steps.length) add(mendWords(fault, steps), () => { grid.write(steps.map((step) => ({ ...step, key: step.row, column: fault.column }))); sheet.focus(); });
      if (fault.row >= 0) add(words.go, () => go(fault.row, fault.column));
      return item;
    });
    if (faultCount > listed.length) {
      const rest = document.createElement("li");
      rest.textContent = say("more", { n: faultCount - listed.length });
      items.push(rest);
    }
    at("fault-list").replaceChildren(...items);
  };
  const go = (row, column) => {
    if (!indexOf.has(row)) { at("filter-text").value = ""; at("filter-service").value = ""; at("filter-show").value = ""; filter(); }
    grid.select(indexOf.get(row), column);
    sheet.focus();
  };

  // --- filter --------------------------------------------------------------------------------------------------------
  const also = new Set();
  const filter = ({ again = false } = {}) => {
    if (!again) also.clear();
    const text = at("filter-text").value.trim().toLowerCase(), service = at("filter-service").value, show = at("filter-show").value;
    const wanted = rows.map((row, index) => {
      if (also.has(index)) return true;
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
  const stored = () => rows.flatMap((row, index) => [...edits[index], ...agreed[index]].map(([column, figure]) => [row.key, row.kind === "queue" ? "" : row.service, columns[column].key, figure, base(index, column)]));
  const draft = new window.QuotaDraft(sheet.dataset.draft, stored);
  draft.version = data.version;
  const keep = () => draft.keep();
  const restore = () => {
    const kept = draft.read();
    if (!kept) return null;
    const columnNamed = new Map(columns.map((column, index) => [column.key, index]));
    const moved = [], lost = [];
    let n = 0;
    for (const [key, service, name, figure, was] of kept.cells) {
      const row = rowNamed.get(`${key}|${service}`), column = columnNamed.get(name);
      if (row === undefined || column === undefined || !mayEdit(row, column)) {
        lost.push({ place: { line: key.replace(/^[a-z-]+\//, ""), column: name.replace(/^card:/, "") }, text: figure === null ? "" : String(figure), why: words.gone });
        continue;
      }
      putAgain(row, column, figure);
      if (!isChanged(row, column)) continue;
      n += 1;
      if (was !== undefined && was !== base(row, column)) moved.push({ row, column, from: was, to: base(row, column), mine: figure });
    }
    return n || lost.length ? { n, moved, lost, at: kept.at } : null;
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
  // What stood in the edited cells when they were edited: the server says where that has moved.
  const known = () => {
    const found = {};
    rows.forEach((row, index) => { for (const column of edits[index].keys()) lay(found, [row.key, ...row.path, ...columns[column].path], figureOut(column, base(index, column))); });
    return found;
  };
  const takeOver = () => {
    rows.forEach((row, index) => {
      if (!rest[row.key]) return;
      columns.forEach((column, number) => {
        let from = rest[row.key];
        const path = [...row.path, ...column.path];
        for (const step of path.slice(0, -1)) from = from?.[step];
        if (!from || !(path.at(-1) in from)) return;
        const figure = from[path.at(-1)];
        putAgain(index, number, figure === null ? null : column.kind === "memory" ? Math.round(figure / 2 ** 20) : figure);
        delete from[path.at(-1)];
      });
    });
    const prune = (map) => { for (const [key, entry] of Object.entries(map)) if (entry && typeof entry === "object" && !Array.isArray(entry)) { prune(entry); if (!Object.keys(entry).length) delete map[key]; } };
    prune(rest);
  };

  // --- the server's word ---------------------------------------------------------------------------------------------
  let asking = 0, asked = null;
  const token = () => document.querySelector("#review-form [name=csrfmiddlewaretoken]").value;
  // A table is read by the server, as everywhere; null = it was not, and why is said.
  const read = async (body, source) => {
    const refused = (why) => intake.report({ step: [], same: 0, left: [{ text: "", why }], source });
    try {
      const answer = await fetch(`${sheet.dataset.table}?${source}`, { method: "POST", credentials: "same-origin", body, headers: { "Content-Type": "text/csv", "X-CSRFToken": token() } });
      if (!answer.ok) throw new Error(String(answer.status));
      const { lines, error } = await answer.json();
      if (!error) return lines;
      refused(error);
    } catch { refused(words.unread); }
    return null;
  };
  const askServer = () => {
    clearTimeout(asking);
    asked?.abort();
    [answered, beyond, sendable] = [[], 0, false];
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
        const said = await answer.json();
        [answered, beyond, sendable] = [said.errors, said.more_errors, said.blocks === false];
        note.textContent = [words.checked, ...(said.approval?.length ? [say("approval_due", { why: said.approval.join(" · ") })] : [])].join(" · ");
        const list = gather();
        grid.repaint();
        tell(list);
        if (!grid.editor) status();
      } catch (error) {
        if (error.name !== "AbortError") note.textContent = words.unchecked;
      }
    }, 600);
  };

  // --- what moves without an edit: cards in use, and what tide plans make of a quota ----------------------------------
  const cardColumn = new Map(columns.map((column, index) => [column.key, index]));
  const byColumn = (cards) => Object.fromEntries(Object.entries(cards || {}).map(([card, n]) => [cardColumn.get(`card:${card}`), n]).filter(([column]) => column !== undefined));
  const live = ({ use, effective }) => {
    for (const row of rows) {
      row.use = row.kind === "queue" ? byColumn(use[row.name]) : {};
      if (row.kind === "queue") row.effective = Object.fromEntries(Object.entries(byColumn(effective[row.name])).filter(([column, n]) => n !== (row.values[column] ?? 0)));
    }
    // Children stand after their parents.
    for (const row of [...rows].reverse()) {
      if (row.parent < 0) continue;
      const above = rows[row.parent].use;
      for (const [column, n] of Object.entries(row.use)) above[column] = (above[column] || 0) + n;
    }
    grid.repaint();
    status();
  };

  // --- what others change meanwhile: their figures come in, one's own edits stay --------------------------------------
  // Asked each 10 s, as a cell is opened and as one is closed; one request at a time.
  let looking = false, lookAgain = false, beside = null;
  const refresh = async () => {
    if (document.hidden || draft.sent) return;
    tellNews();
    intake.freshen();
    if (looking) { lookAgain = true; return; }
    looking = true;
    const etag = grid.editor && beside ? beside.etag : data.etag;
    const fresh = await ask(etag);
    looking = false;
    if (fresh && !draft.sent) {
      if (grid.editor) layBeside(fresh);
      else if (etag === data.etag) takeIn(fresh);  // else the cell was closed meanwhile, which asks again
    }
    if (lookAgain) { lookAgain = false; refresh(); }
  };
  const ask = async (etag) => {
    try {
      const answer = await fetch(sheet.dataset.source, { credentials: "same-origin", headers: { Accept: "application/json", "If-None-Match": etag } });
      if (answer.status === 304 || !answer.ok) return null;
      const fresh = await answer.json();
      // Ages go on after the answer.
      for (const writer of fresh.writers || []) writer.at = Date.now() - 1000 * writer.seconds;
      return fresh;
    } catch { return null; }  // no connection: the next round asks again
  };
  // While a cell is open nothing moves under the hands: what others put into it stands beside it.
  const layBeside = (fresh) => {
    if (fresh.live) { if (beside) beside.etag = fresh.etag; return; }
    if (fresh.version === data.version) return;
    beside = { etag: fresh.etag, rows: fresh.rows, columns: fresh.columns, writers: [...fresh.writers, ...(beside?.writers || [])] };
    tellNews();
  };
  const tellNews = () => {
    if (!grid.editor || !beside) return;
    const row = view[grid.editor.row], { column } = grid.editor, next = beside.rows[row], own = rows[row];
    if (!next || next.key !== own.key || next.service !== own.service || beside.columns[column]?.key !== columns[column].key) return;
    const to = next.values[column] ?? null;
    grid.news(to === base(row, column) ? "" : whoSet(beside.writers, row, column, to));
  };
  const whoSet = (writers, row, column, figure) => {
    const path = [rows[row].key, ...rows[row].path, ...columns[column].path];
    const holds = ({ edits: found }) => {
      let from = found;
      for (const step of path) { if (!from || typeof from !== "object" || !(step in from)) return false; from = from[step]; }
      return true;
    };
    const writer = writers.find(holds), n = shown(column, figure) || "–";
    if (!writer) return say("set_meanwhile", { n });
    const minutes = Math.floor((Date.now() - writer.at) / 60_000);
    return say(minutes ? "set_ago" : "set_now", { who: writer.by, n, minutes });
  };
  const takeIn = (fresh) => {
    beside = null;
    data.etag = fresh.etag;
    if (fresh.live) { live(fresh.live); return; }
    if (fresh.version === data.version) return;
    const same = (ours, theirs, name) => ours.length === theirs.length && ours.every((one, index) => name(one) === name(theirs[index]));
    if (!same(columns, fresh.columns, (column) => column.key) || !same(rows, fresh.rows, (row) => `${row.key}|${row.service}`)) { intake.moved([], { reload: true }); return; }
    const list = [];
    rows.forEach((row, index) => {
      const next = fresh.rows[index];
      columns.forEach((_column, column) => {
        const from = row.values[column] ?? null, to = next.values[column] ?? null;
        if (from === to) return;
        const wish = edits[index].has(column) ? edits[index].get(column) : agreed[index].get(column);
        const mine = wish !== to ? wish : undefined;
        list.push({ row: index, column, from, to, mine, who: () => whoSet(fresh.writers, index, column, to) });
      });
      Object.assign(row, next);
      for (const [column, figure] of [...edits[index], ...agreed[index]]) putAgain(index, column, figure);
    });
    data.version = fresh.version;
    draft.version = fresh.version;
    sums = new window.QuotaSums(rows, columns, value, base);
    [answered, beyond, sendable] = [[], 0, false];
    const faults = gather();
    grid.repaint();
    tell(faults);
    status();
    intake.moved(list);
    draft.keepNow();
    askServer();
  };

  // --- the buttons ---------------------------------------------------------------------------------------------------
  takeOver();
  const intake = new window.QuotaIntake({ rows, columns, say, figures, go: (row, column) => go(row, column), revert: (step) => { grid.revert(step); sheet.focus(); } });
  const back = restore();
  grid = new window.TideGrid(sheet, model);
  window.quotaGrid = grid;
  filter();
  sums.update(columns.map((_column, index) => index));
  tell(gather());
  grid.repaint();
  status();
  if (back) {
    // As all times of the console: in the reader's zone, which is named.
    const { zone: timeZone } = sheet.dataset;
    const zone = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "shortOffset" }).formatToParts(back.at).find(({ type }) => type === "timeZoneName").value;
    const when = `${new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }).format(back.at)} ${zone.replace("GMT", "UTC")}`;
    at("draft-text").textContent = say(back.n === 1 ? "restored_one" : "restored", { when, n: back.n });
    at("draft-note").hidden = !back.n;
    intake.moved(back.moved);
    if (back.lost.length) intake.report({ step: [], same: 0, left: back.lost, source: "edit" });
  }
  if (changedCells()) askServer();
  sheet.removeAttribute("aria-busy");
  sheet.dataset.state = "ready";
  // A draft that comes from another page is shown where it edits.
  const edited = rows.map((_row, index) => index).filter((index) => edits[index].size);
  const first = edited.find((index) => rows[index].kind === "queue") ?? edited[0] ?? -1;
  if (first >= 0 && Object.keys(data.edits).length) go(first, Math.min(...edits[first].keys()));

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
    for (const wishes of agreed) wishes.clear();
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
    const written = (cell) => (/[",;\t\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
    const text = lines.map((line) => line.map((cell) => written(cell.replace(/^'*[=+\-@\t]/, "'$&"))).join(",")).join("\r\n");
    link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
    link.download = sheet.dataset.file;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  at("import-csv").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const lines = await read(file, "file");
    // A file says itself where its figures belong; by their place alone only what is pasted goes.
    if (lines && intake.named(lines)) grid.pasteTable(lines, "file");
    else if (lines) intake.report({ step: [], same: 0, left: [{ text: "", why: say("no_heads") }], source: "file" });
    event.target.value = "";
    sheet.focus();
  });

  addEventListener("beforeunload", (event) => { draft.keepNow(); if (!draft.sent && changedCells()) event.preventDefault(); });
  at("moved-reload").addEventListener("click", () => {
    grid.commit();
    draft.keepNow();
    draft.sent = true;
    location.reload();
  });
  setInterval(refresh, 10_000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  at("review-form").addEventListener("submit", (event) => {
    grid.commit();
    if (at("review").ariaDisabled === "true") {
      event.preventDefault();
      return at("faults").focus();
    }
    at("review-edits").value = JSON.stringify(patch());
    at("review-known").value = JSON.stringify(known());
    draft.send();
  });
})();
