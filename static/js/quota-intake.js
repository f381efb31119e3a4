// What came of a paste, a file or a fill: window.QuotaIntake. It finds the cells that a table with names means, and keeps
// a panel that says what was taken over, what was not and why, with a way to each cell and one way back for all.
(() => {
  "use strict";
  // Heads of our own files that say whose row it is, and hold no figure.
  const ABOUT = new Set(["name", "service_type", "kind", "key", "tenant", "project", "queue", "business_line"]);
  const MOST_SHOWN = 500;
  const at = (id) => document.getElementById(id);

  class QuotaIntake {
    // rows, columns, words as the page got them; figures writes them; go(row, column) shows a cell; revert(step) undoes.
    constructor({ rows, columns, say, figures, go, revert }) {
      Object.assign(this, { rows, columns, say, figures, go, revert });
      at("intake-close").addEventListener("click", () => { at("intake").hidden = true; });
      at("intake-undo").addEventListener("click", () => {
        const { step } = this;
        this.step = null;
        if (step) this.revert(step);
        at("intake").hidden = true;
      });
      at("moved-close").addEventListener("click", () => { at("moved").hidden = true; });
    }

    // A table with names of columns above and of rows in front is put where the names say; null = it has none.
    named(lines) {
      const filled = lines.filter(([, cells]) => cells.some((text) => text.trim()));
      if (filled.length < 2 || filled[0][1].length < 2) return null;
      const labels = new Map();
      this.columns.forEach((column, index) => {
        for (const name of [column.key.replace(/^card:/, ""), column.title, column.label].map((text) => text.toLowerCase())) {
          labels.set(name, labels.has(name) && labels.get(name) !== index ? undefined : index);
        }
      });
      const names = filled[0][1].map((text) => text.trim().toLowerCase()), heads = names.map((name) => labels.get(name));
      if (!heads.some((found) => found !== undefined) || heads[0] !== undefined) return null;
      const wanted = [], left = [], seen = new Map();
      this.unknownColumns(filled, heads, left);
      const [serviceAt, keyAt] = ["service_type", "key"].map((head) => names.indexOf(head));
      for (const [line, cells] of filled.slice(1)) {
        const name = cells[0].trim();
        const n = heads.filter((column, place) => column !== undefined && (cells[place] || "").trim() !== "").length;
        const { row, why } = this.rowOf(name, cells[serviceAt]?.trim(), cells[keyAt]?.trim());
        if (row === undefined || cells.slice(heads.length).some((text) => text.trim())) {
          if (row !== undefined) left.push({ place: { line }, text: name, why: this.say("too_wide") });
          else if (n || name) left.push({ place: { line }, text: name, why: this.say("cells_of", { why, n }) });
          continue;
        }
        heads.forEach((column, place) => {
          if (column === undefined || cells[place] === undefined) return;
          const text = cells[place].trim(), key = `${row}|${column}`;
          if (seen.has(key)) { if (text !== "" && seen.get(key) !== text) left.push({ key: row, column, text, why: this.say("twice", { line }) }); return; }
          seen.set(key, text);
          wanted.push({ key: row, column, text });
        });
      }
      return { wanted, left };
    }

    unknownColumns([[line, names], ...below], heads, left) {
      names.forEach((text, place) => {
        const head = text.trim();
        if (place === 0 || heads[place] !== undefined || ABOUT.has(head.toLowerCase())) return;
        const n = below.filter(([, cells]) => (cells[place] || "").trim() !== "").length;
        if (n) left.push({ place: { line, column: place + 1 }, text: head, why: this.say("cells_of", { why: this.say("no_column"), n }) });
      });
    }

    // A key says all; a name may be a queue's, a project's or a tenant's, in this order, and has to mean one row.
    rowOf(name, service, key) {
      if (!this.places) {
        this.places = new Map();
        this.rows.forEach((row, index) => {
          if (row.kind === "service") return;
          for (const word of new Set([`${row.service} ${row.key}`, row.key, row.name.toLowerCase(), row.title.toLowerCase()])) {
            if (!this.places.has(word)) this.places.set(word, []);
            this.places.get(word).push(index);
          }
        });
      }
      let found = key ? this.places.get(`${service} ${key}`) || this.places.get(key) || [] : this.places.get(name.toLowerCase()) || [];
      if (service) found = found.filter((index) => this.rows[index].service === service);
      for (const kind of ["queue", "project", "tenant"]) {
        const own = found.filter((index) => this.rows[index].kind === kind);
        if (own.length) { found = own; break; }
      }
      if (found.length === 1) return { row: found[0] };
      return { why: found.length ? this.say("several_rows", { n: found.length }) : this.say("no_row") };
    }

    // --- the panel -----------------------------------------------------------------------------------------------------

    place({ row, column }) {
      const { kind, label, title } = this.columns[column];
      return `${this.rows[row].title} · ${kind === "cards" ? label : title}`;
    }

    report({ step, same, left, source }) {
      this.step = step;
      const title = this.say(source === "file" ? "intake_file" : source === "paste" ? "intake_paste" : "intake_edit");
      const counts = [["intake_some", step.length], ["intake_not", left.length], ["intake_same", same]].filter(([, n]) => n).map(([word, n]) => this.say(word, { n }));
      at("intake-title").textContent = `${title} ${counts.join(" · ") || this.say("intake_none")}`;
      at("intake-undo").hidden = !step.length;
      this.fill("intake-left", left.map((one) => this.item(one)));
      this.fill("intake-taken-list", step.map(({ row, column, before, after }) => this.line(`${this.place({ row, column })}: ${this.figure(column, before)} → ${this.figure(column, after)}`, { row, column })));
      at("intake-taken").hidden = !step.length;
      at("intake-taken-title").textContent = this.say("intake_taken", { n: step.length });
      at("intake").hidden = false;
    }

    figure(column, figure) { return this.figures.shown(column, figure) || "–"; }

    item({ key, column, text, why, place }) {
      const quoted = text === "" ? "" : ` “${text}”`;
      if (key !== undefined) return this.line(`${this.place({ row: key, column })}${quoted}: ${why}`, { row: key, column });
      if (!place) return this.line(why);
      const where = place.column ? this.say("line_column", place) : this.say("line", place);
      return this.line(`${where}${quoted}: ${why}`);
    }

    line(text, cell = null) {
      const item = document.createElement("li"), words = document.createElement("span");
      words.textContent = text;
      item.append(words);
      if (cell) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "btn btn-sm";
        button.textContent = this.say("go");
        button.setAttribute("aria-label", `${this.say("go")}: ${this.place(cell)}`);
        button.addEventListener("click", () => this.go(cell.row, cell.column));
        item.append(button);
      }
      return item;
    }

    fill(id, items) {
      const shown = items.slice(0, MOST_SHOWN);
      if (items.length > MOST_SHOWN) shown.push(this.line(this.say("and_more", { n: items.length - MOST_SHOWN })));
      at(id).replaceChildren(...shown);
      at(id).hidden = !items.length;
    }

    // What another person changed under one's hands: [{ row, column, from, to, mine, who }], mine = what stands here instead.
    moved(list, { reload = false } = {}) {
      if (!list.length && !reload) return;
      const both = list.filter((one) => one.mine !== undefined).length;
      at("moved-title").textContent = reload ? this.say("moved_rows") : this.say(both ? "moved_both" : "moved", { n: list.length, both });
      const told = [...list].sort((a, b) => (b.mine !== undefined) - (a.mine !== undefined));
      this.told = told.slice(0, MOST_SHOWN).map(({ row, column, from, to, mine, who }) => () => {
        const change = `${this.place({ row, column })}: ${this.figure(column, from)} → ${this.figure(column, to)}`;
        const text = who ? `${change} (${who()})` : change;
        return mine === undefined ? text : `${text} · ${this.say("yours_stays", { n: this.figure(column, mine) })}`;
      });
      this.fill("moved-list", told.map(({ row, column }, index) => this.line(this.told[index]?.() ?? "", { row, column })));
      at("moved-reload").hidden = !reload;
      at("moved").hidden = false;
    }

    // The panel stays: how long ago something was set goes on.
    freshen() {
      const items = at("moved-list").children;
      (this.told || []).forEach((said, index) => {
        const words = items[index]?.firstChild, text = said();
        if (words && words.textContent !== text) words.textContent = text;
      });
    }
  }

  window.QuotaIntake = QuotaIntake;
})();
