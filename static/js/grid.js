// A spreadsheet over rows × columns: window.TideGrid. It knows cells, selection, keys, clipboard and undo, and nothing of
// quotas: a model says what a cell shows and what a text means. The drawing is in grid-rows.js.
//
//   new TideGrid(element, {
//     columns: [{ key, label, title, width }],          the first column is the name of the row and stays in place
//     count(), name(row), rowClass(row), level(row),
//     cell(row, column) -> { text, note, before, state, title, readonly },
//     raw(row, column) -> text to copy or edit,
//     parse(key, column, text) -> { value } | { error },
//     fixed(key, column) -> why a cell cannot be edited, or "",
//     get(key, column), set(changes: [{ row: key, column, value }])   keys are the model's own: rowKey(index)
//     written({ step, same, left, source })   what came of an input: left = [{ key, column, text, why, place }]
//     opened(), closed()   the editor of a cell was opened, or closed
//     read(text) -> [[number, cells]] of text that has more than one cell
//     show(keys)   these rows have to be in sight, whatever the filter says
//   })
(() => {
  "use strict";
  const setAttribute = (el, name, value) => { if (value) el.setAttribute(name, value); else el.removeAttribute(name); };

  class TideGrid {
    constructor(el, model) {
      this.el = el;
      this.model = model;
      this.undone = [];
      this.done = [];
      this.active = { row: 0, column: 0 };
      this.ranges = [{ r0: 0, c0: 0, r1: 0, c1: 0 }];
      this.editor = null;
      this.input = document.createElement("input");
      this.tip = document.createElement("div");
      this.tip.className = "sheet-tip";
      this.tip.hidden = true;
      this.tip.setAttribute("aria-hidden", "true");  // the line below the grid says it aloud
      this.said = document.createElement("div");
      this.said.className = "sheet-tip";
      this.said.hidden = true;
      this.said.setAttribute("role", "status");
      el.parentElement.append(this.tip, this.said);
      this.drawn = new window.TideGridRows(el, model, (row) => { if (this.editor?.row === row) this.commit(); });
      this.listen();
      this.refresh();
    }

    get columns() { return this.model.columns; }

    // The list of rows has changed: draw anew.
    refresh() {
      this.commit();
      const count = this.model.count();
      this.active.row = Math.max(0, Math.min(this.active.row, count - 1));
      this.drawn.refresh(count);
      this.select(this.active.row, this.active.column, { keep: false, quiet: true });
    }

    repaint(columns) { this.drawn.repaint(columns); }

    // --- selection ---------------------------------------------------------------------------------------------------

    select(row, column, { extend = false, add = false, quiet = false, scroll = true } = {}) {
      const last = this.model.count() - 1;
      if (last < 0) return;
      const to = { row: Math.max(0, Math.min(row, last)), column: Math.max(0, Math.min(column, this.columns.length - 1)) };
      if (extend) {
        const from = this.anchor || this.active;
        this.anchor = from;
        this.head = to;
        this.ranges[this.ranges.length - 1] = {
          r0: Math.min(from.row, to.row), r1: Math.max(from.row, to.row), c0: Math.min(from.column, to.column), c1: Math.max(from.column, to.column),
        };
      } else {
        this.anchor = null;
        this.head = null;
        this.active = to;
        const one = { r0: to.row, r1: to.row, c0: to.column, c1: to.column };
        if (add) this.ranges.push(one); else this.ranges = [one];
      }
      if (scroll && !quiet) this.drawn.reveal(to.row, to.column);
      this.drawn.mark(this.active, this.ranges);
      this.model.selected?.(this);
    }

    selectRange(range) {
      this.active = { row: range.r0, column: range.c0 };
      this.anchor = null;
      this.ranges = [range];
      this.drawn.mark(this.active, this.ranges);
      this.model.selected?.(this);
    }

    // Each selected cell once, in reading order.
    *cells() {
      const seen = new Set();
      for (const range of this.ranges) {
        for (let row = range.r0; row <= range.r1; row += 1) {
          for (let column = range.c0; column <= range.c1; column += 1) {
            const key = row * this.columns.length + column;
            if (this.ranges.length > 1) { if (seen.has(key)) continue; seen.add(key); }
            yield { row, column };
          }
        }
      }
    }

    // --- changes -----------------------------------------------------------------------------------------------------

    // One step that can be undone. What means nothing and what cannot be edited is handed back with the reason.
    write(wanted, { left = [], source = "edit" } = {}) {
      const step = [], out = [...left];
      let same = 0;
      for (const { row, column, text, value, key = this.model.rowKey(row) } of wanted) {
        const before = this.model.get(key, column), fixed = this.model.fixed(key, column);
        const parsed = text === undefined ? { value } : this.model.parse(key, column, text);
        if (!parsed.error && parsed.value === before) same += 1;
        else if (fixed) { if (text === "") same += 1; else out.push({ key, column, text, why: fixed }); }
        else if (parsed.error) out.push({ key, column, text, why: parsed.error });
        else step.push({ row: key, column, before, after: parsed.value });
      }
      this.take(step);
      this.model.written?.({ step, same, left: out, source });
      return step.length > 0;
    }

    take(step) {
      if (!step.length) return;
      this.done.push(step);
      this.undone = [];
      this.model.show?.([...new Set(step.map((change) => change.row))]);
      this.model.set(step.map(({ row, column, after }) => ({ row, column, value: after })));
    }

    // Take one step back although others may have come after it: what was edited again since stays.
    revert(step) {
      this.commit();
      this.take(step.filter((change) => this.model.get(change.row, change.column) === change.after)
        .map(({ row, column, before, after }) => ({ row, column, before: after, after: before })));
    }

    undo() { this.turn(this.done, this.undone, "before"); }

    redo() { this.turn(this.undone, this.done, "after"); }

    turn(from, to, side) {
      this.commit();
      const step = from.pop();
      if (!step) return;
      to.push(step);
      this.model.show?.([...new Set(step.map((change) => change.row))]);
      this.model.set(step.map((change) => ({ row: change.row, column: change.column, value: change[side] })));
      const index = this.model.indexOf(step[0].row);
      if (index >= 0) this.select(index, step[0].column);
    }

    setSelected(text) { return this.write([...this.cells()].map((place) => ({ ...place, text }))); }

    fill(down) {
      const wanted = [];
      for (const range of this.ranges) {
        // A single cell takes what stands before it.
        const r0 = down && range.r0 === range.r1 ? Math.max(0, range.r0 - 1) : range.r0;
        const c0 = !down && range.c0 === range.c1 ? Math.max(0, range.c0 - 1) : range.c0;
        for (let row = r0; row <= range.r1; row += 1) {
          for (let column = c0; column <= range.c1; column += 1) {
            if (down ? row === r0 : column === c0) continue;
            wanted.push({ row, column, text: this.model.raw(down ? r0 : row, down ? column : c0) });
          }
        }
      }
      this.write(wanted);
    }

    // --- the editor of a cell ----------------------------------------------------------------------------------------

    edit(text) {
      const { row, column } = this.active;
      if (!this.model.count() || this.editor) return;
      if (this.model.cell(row, column).readonly) { this.model.refused?.(row, column); return; }
      this.drawn.reveal(row, column);
      const holder = this.drawn.cellAt(row, column);
      const { input } = this;
      input.className = "sheet-input";
      input.setAttribute("aria-label", `${this.model.name(row)}, ${this.columns[column].label}`);
      input.value = text === undefined ? this.model.raw(row, column) : text;
      this.editor = { input, row, column };
      holder.append(input);
      input.focus({ preventScroll: true });
      if (text === undefined) input.select(); else input.setSelectionRange(text.length, text.length);
      this.look();
      this.model.opened?.();
    }

    // What is being typed, as one types: the model may say what is wrong with it.
    look() {
      const { input, row, column } = this.editor;
      const parsed = this.model.parse(this.model.rowKey(row), column, input.value);
      const seen = parsed.error ? { error: parsed.error } : this.model.typed(row, column, parsed.value);
      input.classList.toggle("invalid", Boolean(seen?.error));
      input.classList.toggle("doubtful", Boolean(!seen?.error && seen?.warning));
      setAttribute(input, "aria-invalid", seen?.error ? "true" : null);
      this.hint(seen?.error || seen?.warning || "", Boolean(seen?.error));
      this.model.told?.(seen);
    }

    // What is wrong, beside the cell.
    hint(text, wrong = false) {
      const { tip } = this;
      tip.textContent = text;
      tip.hidden = !text;
      tip.classList.toggle("wrong", wrong);
      if (!text) return;
      const cell = this.input.getBoundingClientRect(), own = tip.getBoundingClientRect();
      const below = cell.bottom + 4 + own.height < innerHeight;
      tip.style.left = `${Math.max(8, Math.min(cell.left, innerWidth - own.width - 8))}px`;
      tip.style.top = `${below ? cell.bottom + 4 : cell.top - own.height - 4}px`;
    }

    // The figure that another person saved for the open cell is shown beside it; the typed text and the focus stay.
    news(text) {
      const { said } = this;
      if (said.textContent !== text) said.textContent = text;
      said.hidden = !text;
      if (!text) return;
      const cell = this.input.getBoundingClientRect(), own = said.getBoundingClientRect();
      const after = cell.right + 4 + own.width < innerWidth;
      said.style.left = `${after ? cell.right + 4 : Math.max(8, cell.left - own.width - 4)}px`;
      said.style.top = `${cell.top}px`;
    }

    close() {
      const { editor } = this;
      if (!editor) return null;
      this.editor = null;
      this.hint("");
      this.news("");
      // The focus and the cursor go first: a browser looks long for another place in the cells for them.
      if (document.activeElement === editor.input) this.el.focus({ preventScroll: true });
      getSelection().removeAllRanges();
      editor.input.remove();
      return editor;
    }

    commit({ all = false } = {}) {
      const editor = this.close();
      if (!editor) return true;
      const text = editor.input.value;
      const places = all ? [...this.cells()] : [{ row: editor.row, column: editor.column }];
      const written = this.write(places.map((place) => ({ ...place, text })), { source: "typed" });
      this.model.closed?.();
      return written;
    }

    cancel() { this.close(); this.model.told?.(null); this.model.selected?.(this); this.model.closed?.(); }

    // --- listening ---------------------------------------------------------------------------------------------------

    listen() {
      const { el, input } = this;
      input.type = "text";
      input.inputMode = "decimal";
      input.autocomplete = "off";
      input.addEventListener("input", () => { if (this.editor) this.look(); });
      input.addEventListener("blur", () => this.commit());
      let due = false;
      el.addEventListener("scroll", () => {
        this.hint("");
        if (this.editor) this.news(this.said.textContent);
        if (due) return;
        due = true;
        requestAnimationFrame(() => { due = false; this.drawn.scrolled(); this.drawn.paint(); });
      }, { passive: true });
      new ResizeObserver(() => { this.drawn.measure(); this.drawn.paint(); }).observe(el);
      el.addEventListener("keydown", (event) => this.key(event));
      el.addEventListener("copy", (event) => this.copy(event, false));
      el.addEventListener("cut", (event) => this.copy(event, true));
      el.addEventListener("paste", (event) => this.paste(event));
      el.addEventListener("mousedown", (event) => this.press(event));
      el.addEventListener("dblclick", (event) => { if (this.placeOf(event)?.cell && !this.editor) this.edit(); });
    }

    placeOf(event) {
      const cell = event.target.closest(".sheet-cell");
      const row = event.target.closest(".sheet-body .sheet-row");
      const column = cell ? Number(cell.dataset.column) : -1;
      if (!row) return cell ? { header: true, column } : null;
      return { row: Number(row.getAttribute("aria-rowindex")) - 2, column, cell: Boolean(cell) };
    }

    press(event) {
      if (event.button !== 0 || event.target === this.editor?.input || event.target.closest("a")) return;
      const place = this.placeOf(event);
      if (!place) return;
      event.preventDefault();
      this.commit();
      this.el.focus({ preventScroll: true });
      const last = this.model.count() - 1;
      if (place.header) { this.selectRange({ r0: 0, r1: last, c0: place.column, c1: place.column }); return; }
      if (!place.cell) { this.selectRange({ r0: place.row, r1: place.row, c0: 0, c1: this.columns.length - 1 }); return; }
      const again = event.pointerType !== "mouse" && place.row === this.active.row && place.column === this.active.column && matchMedia("(pointer: coarse)").matches;
      this.select(place.row, place.column, { extend: event.shiftKey, add: event.ctrlKey || event.metaKey, scroll: false });
      if (again) { this.edit(); return; }
      this.drag(event);
    }

    drag(start) {
      let point = start;
      const step = () => {
        const box = this.el.getBoundingClientRect(), { headHeight: head, nameWidth: name } = this.drawn;
        if (point.clientY > box.bottom - 12) this.el.scrollTop += 18;
        else if (point.clientY < box.top + head) this.el.scrollTop -= 18;
        if (point.clientX > box.right - 12) this.el.scrollLeft += 24;
        else if (point.clientX < box.left + name) this.el.scrollLeft -= 24;
      };
      const timer = setInterval(step, 50);
      const move = (event) => {
        point = event;
        const under = document.elementFromPoint(event.clientX, event.clientY);
        const place = under && this.el.contains(under) ? this.placeOf({ target: under }) : null;
        if (place?.cell && (place.row !== (this.head || this.active).row || place.column !== (this.head || this.active).column)) {
          this.select(place.row, place.column, { extend: true, scroll: false });
        }
      };
      const stop = () => { clearInterval(timer); removeEventListener("mousemove", move); removeEventListener("mouseup", stop); };
      addEventListener("mousemove", move);
      addEventListener("mouseup", stop);
    }

    move(rows, columns, extend) {
      const from = extend ? this.head || this.active : this.active;
      this.select(from.row + rows, from.column + columns, { extend });
    }

    // To the right (or left) and on to the next line; false at the end, where the key leaves the grid.
    step(back) {
      const width = this.columns.length, last = this.model.count() * width - 1;
      const next = this.active.row * width + this.active.column + (back ? -1 : 1);
      if (next < 0 || next > last) return false;
      this.select(Math.floor(next / width), next % width);
      return true;
    }

    key(event) {
      const mod = event.ctrlKey || event.metaKey;
      if (this.editor) { this.keyInEditor(event, mod); return; }
      this.drawn.scrolled();
      const page = this.drawn.perPage;
      const last = this.model.count() - 1, width = this.columns.length - 1;
      const { shiftKey: shift } = event;
      const from = shift ? this.head || this.active : this.active;
      const actions = {
        ArrowUp: () => (mod ? this.select(0, from.column, { extend: shift }) : this.move(-1, 0, shift)),
        ArrowDown: () => (mod ? this.select(last, from.column, { extend: shift }) : this.move(1, 0, shift)),
        ArrowLeft: () => (mod ? this.select(from.row, 0, { extend: shift }) : this.move(0, -1, shift)),
        ArrowRight: () => (mod ? this.select(from.row, width, { extend: shift }) : this.move(0, 1, shift)),
        PageUp: () => this.move(-page, 0, shift),
        PageDown: () => this.move(page, 0, shift),
        Home: () => this.select(mod ? 0 : from.row, 0, { extend: shift }),
        End: () => this.select(mod ? last : from.row, width, { extend: shift }),
        Enter: () => (shift ? this.move(-1, 0, false) : this.edit()),
        F2: () => this.edit(),
        Delete: () => this.setSelected(""),
        Backspace: () => this.setSelected(""),
      };
      const chords = {
        z: () => (shift ? this.redo() : this.undo()),
        y: () => this.redo(),
        d: () => this.fill(true),
        r: () => this.fill(false),
        a: () => this.selectRange({ r0: 0, r1: last, c0: 0, c1: width }),
      };
      if (event.key === "Tab") { if (!this.step(shift)) return; }
      else if (event.key === "Escape") {
        if (this.ranges.length === 1 && this.ranges[0].r0 === this.ranges[0].r1 && this.ranges[0].c0 === this.ranges[0].c1) this.model.leave?.();
        else this.select(this.active.row, this.active.column);
      } else if (mod && !event.altKey && chords[event.key.toLowerCase()]) chords[event.key.toLowerCase()]();
      else if (actions[event.key] && !event.altKey) actions[event.key]();
      else if (!mod && !event.altKey && event.key === "Process") { this.edit(""); return; }
      else if (!mod && !event.altKey && event.key.length === 1) this.edit(event.key);
      else return;
      event.preventDefault();
      event.stopPropagation();
    }

    keyInEditor(event, mod) {
      event.stopPropagation();
      if (event.isComposing) return;
      const { row, column, input } = this.editor;
      const means = (text) => !this.model.parse(this.model.rowKey(row), column, text).error;
      if (["Enter", "Tab", "ArrowUp", "ArrowDown"].includes(event.key) && !means(input.value)) {
        // What means nothing is not taken over: it stays until it is mended, or Escape drops it.
        this.look();
        event.preventDefault();
        return;
      }
      if (event.key === "Enter") { this.commit({ all: mod }); if (!mod) this.move(event.shiftKey ? -1 : 1, 0, false); }
      else if (event.key === "Tab") { this.commit(); if (!this.step(event.shiftKey)) return; }
      else if (event.key === "Escape") this.cancel();
      else if (event.key === "ArrowUp" || event.key === "ArrowDown") { this.commit(); this.move(event.key === "ArrowUp" ? -1 : 1, 0, false); }
      else return;
      event.preventDefault();
    }

    // --- clipboard ---------------------------------------------------------------------------------------------------

    copy(event, cut) {
      if (this.editor) return;
      const range = this.ranges.at(-1);
      const lines = [];
      for (let row = range.r0; row <= range.r1; row += 1) {
        const line = [];
        for (let column = range.c0; column <= range.c1; column += 1) line.push(this.model.raw(row, column));
        lines.push(line.join("\t"));
      }
      event.clipboardData.setData("text/plain", lines.join("\n"));
      event.preventDefault();
      if (cut) this.setSelected("");
      this.model.copied?.(lines.length * (range.c1 - range.c0 + 1));
    }

    paste(event) {
      if (this.editor) return;
      event.preventDefault();
      this.pasteText(event.clipboardData.getData("text/plain"));
    }

    async pasteText(text) {
      const range = this.ranges.at(-1), one = text.replace(/\r?\n$/, "");
      const lines = /[\t\r\n]/.test(one) ? await this.model.read(text) : [[1, [one]]];
      if (lines?.length) this.pasteTable(lines, "paste", range);
    }

    // lines = [[number, cells]]
    pasteTable(lines, source, range = this.ranges.at(-1)) {
      const named = this.model.named?.(lines);
      if (named) { this.write(named.wanted, { left: named.left, source }); return; }
      const table = lines.map(([, cells]) => cells);
      if (table.length === 1 && table[0].length === 1) {
        const text = table[0][0].trim();
        this.write([...this.cells()].map((place) => ({ ...place, text })), { source });
        return;
      }
      // A block that fits the selection several times is repeated, as spreadsheets do.
      const rows = Math.max(table.length, (range.r1 - range.r0 + 1) % table.length ? 0 : range.r1 - range.r0 + 1);
      const wide = Math.max(...table.map((line) => line.length));
      const columns = Math.max(wide, (range.c1 - range.c0 + 1) % wide ? 0 : range.c1 - range.c0 + 1);
      const wanted = [], left = [];
      for (let r = 0; r < rows; r += 1) {
        for (let c = 0; c < columns; c += 1) {
          const cell = table[r % table.length][c % wide];
          if (cell === undefined) continue;
          const text = cell.trim(), place = { line: r + 1, column: c + 1 };
          if (range.r0 + r < this.model.count() && range.c0 + c < this.columns.length) wanted.push({ row: range.r0 + r, column: range.c0 + c, text });
          else if (text !== "") left.push({ text, place, why: this.model.beyond(range.r0 + r >= this.model.count()) });
        }
      }
      // The keys first: what is written may bring rows into sight.
      this.write(wanted.map((one) => ({ ...one, key: this.model.rowKey(one.row) })), { left, source });
      this.selectRange({
        r0: range.r0, r1: Math.min(range.r0 + rows, this.model.count()) - 1, c0: range.c0, c1: Math.min(range.c0 + columns, this.columns.length) - 1,
      });
    }
  }

  window.TideGrid = TideGrid;
})();
