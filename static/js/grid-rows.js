// What a grid draws: window.TideGridRows, the heads of the columns and the rows in sight. It knows no keys and no edits.
//
// A key must be on the screen at once, so: rows are never put in or taken out while one works, which would have the
// browser look up the style of every cell anew, but given to other lines; what a cell shows is remembered, since asking
// the page costs more than the answer; sizes are measured when they change; what is out of sight waits for a quiet moment.
(() => {
  "use strict";
  const HEIGHT = 36;
  const AROUND = 6;
  const whenQuiet = window.requestIdleCallback ? (run) => requestIdleCallback(run, { timeout: 400 }) : (run) => setTimeout(run, 80);

  const element = (tag, className, role) => {
    const el = document.createElement(tag);
    if (className) el.className = className;
    if (role) el.setAttribute("role", role);
    return el;
  };
  const setText = (el, text) => { if (el.firstChild) el.firstChild.data = text; else if (text) el.append(text); };
  const setAttribute = (el, name, value) => { if (value) el.setAttribute(name, value); else el.removeAttribute(name); };

  class TideGridRows {
    // leave(row): the elements of a line are about to show another one.
    constructor(el, model, leave) {
      Object.assign(this, { el, model, leave });
      this.rows = [];
      this.count = 0;
      this.top = 0;
      this.left = 0;
      this.waits = false;
      this.marks = { active: { row: -1, column: -1 }, ranges: [] };
      this.template = ["var(--sheet-name)", ...model.columns.map((column) => column.width)].join(" ");
      this.build();
      this.measure();
    }

    build() {
      const { el, model } = this;
      el.replaceChildren();
      el.setAttribute("role", "grid");
      el.setAttribute("aria-multiselectable", "true");
      el.setAttribute("aria-colcount", String(model.columns.length + 1));
      el.tabIndex = 0;
      const head = element("div", "sheet-head", "rowgroup");
      this.headRow = element("div", "sheet-row", "row");
      this.headRow.setAttribute("aria-rowindex", "1");
      this.headRow.style.gridTemplateColumns = this.template;
      const corner = element("div", "sheet-name", "columnheader");
      corner.setAttribute("aria-colindex", "1");
      corner.textContent = model.corner;
      this.headRow.append(corner);
      this.heads = model.columns.map((column, index) => {
        const cell = element("div", "sheet-cell", "columnheader");
        cell.setAttribute("aria-colindex", String(index + 2));
        cell.dataset.column = index;
        cell.title = column.title;
        cell.textContent = column.label;
        this.headRow.append(cell);
        return cell;
      });
      head.append(this.headRow);
      this.body = element("div", "sheet-body", "rowgroup");
      el.append(head, this.body);
    }

    measure() {
      const { el } = this;
      this.height = el.clientHeight || 600;
      this.width = el.clientWidth;
      this.headHeight = this.headRow.offsetHeight;
      this.nameWidth = this.headRow.firstChild.offsetWidth;
      this.edges = this.heads.map((cell) => [cell.offsetLeft, cell.offsetLeft + cell.offsetWidth]);
      this.scrolled();
    }

    // Where it was scrolled to: asked before anything is changed, when the answer costs nothing.
    scrolled() {
      this.top = this.el.scrollTop;
      this.left = this.el.scrollLeft;
    }

    get perPage() { return Math.max(1, Math.floor(this.height / HEIGHT) - 2); }

    inSight(around) {
      return [Math.max(0, Math.floor(this.top / HEIGHT) - around), Math.min(this.count - 1, Math.ceil((this.top + this.height) / HEIGHT) + around)];
    }

    // --- lines ---------------------------------------------------------------------------------------------------------

    // Other lines than before: all are drawn anew.
    refresh(count) {
      this.count = count;
      this.el.setAttribute("aria-rowcount", String(count + 1));
      this.body.style.height = `${count * HEIGHT}px`;
      this.scrolled();
      for (const row of this.rows) this.empty(row);
      this.paint();
    }

    empty(row) {
      row.index = -1;
      row.el.hidden = true;
      row.name.replaceChildren();
      delete row.name.dataset.row;
    }

    // As many elements as are seen at once; line n has the place n modulo their number.
    provide() {
      const wanted = Math.min(this.count, Math.ceil(this.height / HEIGHT) + 2 * AROUND + 2);
      if (this.rows.length >= wanted) return;
      for (const row of this.rows) { if (row.index >= 0) this.leave(row.index); this.empty(row); }
      while (this.rows.length < wanted) this.rows.push(this.makeRow());
      this.body.append(...this.rows.map((row) => row.el));
    }

    makeRow() {
      const el = element("div", "", "row");
      el.hidden = true;
      el.style.gridTemplateColumns = this.template;
      const name = element("div", "sheet-name", "rowheader");
      name.setAttribute("aria-colindex", "1");
      el.append(name);
      const cells = this.model.columns.map((_column, index) => {
        const cell = element("div", "", "gridcell");
        cell.id = `${this.el.id}-${this.rows.length}-${index}`;
        cell.setAttribute("aria-colindex", String(index + 2));
        cell.setAttribute("aria-selected", "false");
        cell.dataset.column = index;
        const parts = { note: element("span", "note"), before: element("span", "before"), text: element("span", "value") };
        cell.append(parts.note, parts.before, parts.text);
        el.append(cell);
        return { el: cell, parts, shown: { note: "", before: "", text: "" }, className: "", selected: false, active: false };
      });
      return { el, name, cells, index: -1, className: "", stale: false, marked: false };
    }

    // What is in sight now; what is around it a moment later.
    paint() {
      this.provide();
      this.fill(0);
      this.soon();
    }

    soon() {
      if (this.waits) return;
      this.waits = true;
      whenQuiet(() => { this.waits = false; this.fill(AROUND); });
    }

    fill(around) {
      const [from, to] = this.inSight(around);
      let drawn = false;
      for (let index = from; index <= to; index += 1) {
        const row = this.rows[index % this.rows.length];
        if (row.index === index && !row.stale) continue;
        if (row.index !== index) this.give(row, index);
        this.paintRow(row);
        drawn = true;
      }
      if (drawn) this.mark();
    }

    give(row, index) {
      if (row.index >= 0) this.leave(row.index);
      if (row.index < 0) row.el.hidden = false;
      row.index = index;
      row.el.style.transform = `translateY(${index * HEIGHT}px)`;
      row.el.setAttribute("aria-rowindex", String(index + 2));
    }

    paintRow(row) {
      const { model } = this;
      const className = `sheet-row ${model.rowClass(row.index)}`;
      if (row.className !== className) { row.className = className; row.el.className = className; }
      row.stale = false;
      model.nameCell(row.index, row.name);
      for (let column = 0; column < row.cells.length; column += 1) this.paintCell(row, column);
    }

    paintCell(row, column) {
      const cell = row.cells[column], { shown, parts, el } = cell;
      const seen = this.model.cell(row.index, column);
      if (shown.note !== seen.note) setText(parts.note, shown.note = seen.note);
      if (shown.before !== seen.before) setText(parts.before, shown.before = seen.before);
      if (shown.text !== seen.text) setText(parts.text, shown.text = seen.text);
      if (shown.state !== seen.state) { shown.state = seen.state; this.dress(cell); }
      if (shown.title !== seen.title) setAttribute(el, "title", shown.title = seen.title);
      if (shown.readonly !== seen.readonly) { shown.readonly = seen.readonly; setAttribute(el, "aria-readonly", seen.readonly ? "true" : ""); }
      if (shown.invalid !== seen.invalid) { shown.invalid = seen.invalid; setAttribute(el, "aria-invalid", seen.invalid ? "true" : ""); }
    }

    dress(cell) {
      const className = `sheet-cell ${cell.shown.state}${cell.selected ? " selected" : ""}${cell.active ? " active" : ""}`;
      if (cell.className !== className) { cell.className = className; cell.el.className = className; }
    }

    // Some columns have changed (all without an argument).
    repaint(columns) {
      const [from, to] = this.inSight(0);
      for (const row of this.rows) {
        if (row.index < 0 || row.stale) continue;
        if (row.index < from || row.index > to) { row.stale = true; continue; }
        this.model.nameCell(row.index, row.name);
        if (columns) for (const column of columns) this.paintCell(row, column);
        else this.paintRow(row);
      }
      this.soon();
    }

    // The element of a cell, where its line is drawn.
    cellAt(row, column) {
      const found = this.rows[row % this.rows.length];
      return found?.index === row ? found.cells[column].el : null;
    }

    // --- selection ---------------------------------------------------------------------------------------------------

    // Show what is selected; without arguments what was told last.
    mark(active = this.marks.active, ranges = this.marks.ranges) {
      this.marks = { active, ranges };
      for (const row of this.rows) {
        if (row.index < 0) continue;
        const own = ranges.filter((range) => row.index >= range.r0 && row.index <= range.r1);
        if (!own.length && !row.marked) continue;
        row.marked = own.length > 0;
        row.cells.forEach((cell, column) => {
          const isSelected = own.some((range) => column >= range.c0 && column <= range.c1);
          const isActive = row.index === active.row && column === active.column;
          if (cell.selected === isSelected && cell.active === isActive) return;
          if (cell.selected !== isSelected) cell.el.setAttribute("aria-selected", String(isSelected));
          cell.selected = isSelected;
          cell.active = isActive;
          this.dress(cell);
        });
      }
      const id = this.cellAt(active.row, active.column)?.id || "";
      if (this.told !== id) setAttribute(this.el, "aria-activedescendant", this.told = id);
      if (this.on === active.column) return;
      this.heads[this.on]?.classList.remove("on");
      this.heads[active.column]?.classList.add("on");
      this.on = active.column;
    }

    reveal(row, column) {
      const { el } = this;
      const line = row * HEIGHT, [start, end] = this.edges[column];
      let { top, left } = this;
      if (line < top) top = line;
      else if (line + HEIGHT > top + this.height - this.headHeight) top = line + HEIGHT - this.height + this.headHeight;
      if (start - this.nameWidth < left) left = start - this.nameWidth;
      else if (end > left + this.width) left = end - this.width;
      if (top !== this.top) el.scrollTop = top;
      if (left !== this.left) el.scrollLeft = left;
      if (top !== this.top || left !== this.left) { this.scrolled(); this.paint(); }
    }
  }

  window.TideGridRows = TideGridRows;
})();
