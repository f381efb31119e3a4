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

    // The edited cells that belong to a breach.
    blame(at, column, below) {
      const cells = [...(this.isChanged(at, column) ? [at] : []), ...this.children[at].flatMap((child) => this.editedBelow(child, column))];
      // Who would have to have room for a higher figure here: the first one above with a limit of its own.
      let above = this.rows[at].parent;
      while (above >= 0 && this.limit(above, column) === null) above = this.rows[above].parent;
      const room = above < 0 ? 0 : Math.max(0, this.limit(above, column) - below[above]);
      return { cells, above, room };
    }

    // The edits that mend a breach, at most two: who was not edited gives what is neither used nor given out; else the
    // ceiling rises, beside it gives who has what is missing for that; else what was edited goes back.
    mend({ at, column, requested, excess, cells, above, room }, may) {
      const lower = (rows, by) => rows.slice(0, 1).map((row) => ({ row, value: this.limit(row, column) - by }));
      const gives = (under, by, not) => {
        const able = this.counted(under, column).filter((row) => row !== not && !this.isChanged(row, column) && may(row, false) && this.spare(row, column) >= by);
        return lower(able.sort((one, other) => this.spare(other, column) - this.spare(one, column)), by);
      };
      const own = gives(at, excess), short = above < 0 ? 0 : Math.max(0, excess - room), beside = short ? gives(above, short, at) : [];
      if (own.length) return own;
      if (may(at, true) && (!short || beside.length)) return [...beside, { row: at, value: requested }];
      return lower(cells.filter((row) => row !== at && may(row, false) && this.limit(row, column) >= excess), excess);
    }

    // Rows below whose own figure counts here.
    counted(at, column) { return this.children[at].flatMap((child) => (this.limit(child, column) === null ? this.counted(child, column) : [child])); }

    // Of a queue's cpu and memory it is not known what is in use.
    spare(at, column) {
      if (this.rows[at].kind === "queue" && !this.cards[column]) return 0;
      return this.limit(at, column) - Math.max(Math.ceil(this.rows[at].use[column] || 0), this.given[at].get(column) || 0);
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
