// The sum rules of the quota tree as far as a page can know them (quota/tree_rules.py has the last word): window.QuotaSums.
// Rows come in tree order, a parent before its children; figures are whole numbers, null is "not set".
(() => {
  "use strict";

  class QuotaSums {
    // value(row, column) reads the figure of now, base(row, column) the one that the page came with.
    constructor(rows, columns, value, base) {
      Object.assign(this, { rows, columns, value, base });
      this.cards = columns.map((column) => column.kind === "cards");
      this.summed = columns.map((column) => ["cards", "cpu", "memory"].includes(column.kind));
      this.children = rows.map(() => []);
      rows.forEach((row, index) => { if (row.parent >= 0) this.children[row.parent].push(index); });
      this.given = rows.map(() => new Map());
      this.excess = rows.map(() => new Map());
      this.faults = new Map();
      this.limitedNow = this.limits(value);
      this.limitedBase = this.limits(base);
      columns.forEach((_column, index) => {
        if (!this.summed[index]) return;
        const below = this.claims(index, base, this.limitedBase);
        rows.forEach((row, at) => {
          if (row.kind === "queue") return;
          const limit = this.limit(at, index, base, this.limitedBase);
          this.excess[at].set(index, limit === null ? 0 : Math.max(0, below[at] - limit));
        });
      });
      columns.forEach((_column, index) => this.column(index));
    }

    // Who has a card quota of its own: with one figure the absent ones are 0, without any there is no limit.
    limits(read) {
      const first = this.cards.indexOf(true);
      const last = this.cards.lastIndexOf(true);
      return this.rows.map((row, at) => {
        if (row.kind === "queue") return true;
        if (row.kind === "service" || first < 0) return false;
        for (let column = first; column <= last; column += 1) if (read(at, column) !== null) return true;
        return false;
      });
    }

    limit(at, column, read = this.value, limited = this.limitedNow) {
      const row = this.rows[at];
      if (row.kind === "service") return row.limits[column] ?? null;
      const figure = read(at, column);
      if (this.cards[column]) return limited[at] ? figure ?? 0 : null;
      return figure;
    }

    // What stands below each row; who has no limit claims what stands below.
    claims(column, read, limited) {
      const below = new Float64Array(this.rows.length);
      for (let at = this.rows.length - 1; at >= 0; at -= 1) {
        const { parent } = this.rows[at];
        if (parent >= 0) below[parent] += this.claim(at, column, read, limited, below);
      }
      return below;
    }

    claim(at, column, read, limited, below) {
      const limit = this.limit(at, column, read, limited);
      if (limit !== null) return limit;
      return this.rows[at].kind === "queue" ? 0 : below[at];
    }

    // After an edit: a tenant that gets its first card quota changes every card column.
    update(columns) {
      const limited = this.limits(this.value);
      const turned = limited.some((yes, at) => yes !== this.limitedNow[at]);
      this.limitedNow = limited;
      const touched = new Set(columns);
      if (turned) this.cards.forEach((yes, index) => { if (yes) touched.add(index); });
      for (const column of touched) this.column(column);
      return touched;
    }

    column(column) {
      if (!this.summed[column]) return;
      const below = this.claims(column, this.value, this.limitedNow);
      const found = [];
      this.rows.forEach((row, at) => {
        if (row.kind === "queue") return;
        this.given[at].set(column, below[at]);
        const limit = this.limit(at, column);
        const excess = limit === null ? 0 : below[at] - limit;
        if (excess > (this.excess[at].get(column) || 0)) found.push({ at, column, requested: below[at], limit, excess, ...this.blame(at, column, below) });
      });
      this.faults.set(column, found);
    }

    isChanged(at, column) { return this.value(at, column) !== this.base(at, column); }

    // The edited cells that belong to a breach, and the sibling that could give way: of those that were not touched the
    // one that has the most beyond what is in use.
    blame(at, column, below) {
      const cells = this.isChanged(at, column) ? [at] : [];
      let sibling = -1, most = 0;
      for (const child of this.children[at]) {
        const now = this.claim(child, column, this.value, this.limitedNow, below);
        const edited = this.editedBelow(child, column);
        cells.push(...edited);
        const spare = now - Math.ceil(this.rows[child].use[column] || 0);
        if (!edited.length && spare > most) { most = spare; sibling = child; }
      }
      // Who would have to have room for a higher figure here: the first one above with a limit of its own.
      let above = this.rows[at].parent;
      while (above >= 0 && this.limit(above, column) === null) above = this.rows[above].parent;
      const room = above < 0 ? 0 : Math.max(0, this.limit(above, column) - below[above]);
      return { cells, sibling, above, room, claim: sibling < 0 ? 0 : this.claim(sibling, column, this.value, this.limitedNow, below) };
    }

    editedBelow(at, column) {
      const found = this.isChanged(at, column) && (this.value(at, column) ?? 0) > (this.base(at, column) ?? -1) ? [at] : [];
      // What stands below a row with its own limit does not move the sum above it.
      if (this.limit(at, column) === null) for (const child of this.children[at]) found.push(...this.editedBelow(child, column));
      return found;
    }
  }

  window.QuotaSums = QuotaSums;
})();
