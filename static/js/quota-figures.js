// How the figures of the quota editor are written and read: window.QuotaFigures. Where a sign could
// part thousands or a fraction, the text is not taken over and the reader is asked what it means.
(() => {
  "use strict";
  const UNIT = { cpu: 1000, memory: 1024 };
  const MOST = { cards: 10_000_000, cpu: 2 ** 50, memory: 2 ** 40, weight: 65_535, priority: 2 ** 31 - 1 };
  const WHOLE = ["cards", "weight", "priority"];
  const GROUPED = /^(?!\d+,\d+$)\d{1,3}([,\s_'’])\d{3}(?:\1\d{3})*(?:\.\d+)?$/;

  class QuotaFigures {
    constructor(columns, say) {
      const numbers = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 3 });
      Object.assign(this, { columns, say, write: (number) => numbers.format(number) });
    }

    unit(column) { return UNIT[this.columns[column].kind] || 1; }

    shown(column, figure) { return figure === null ? "" : this.write(figure / this.unit(column)); }

    plain(column, figure) { return figure === null ? "" : String(figure / this.unit(column)); }

    // Digits of any script, separators of thousands, and the units that people write.
    parse(column, text) {
      const { kind } = this.columns[column], { say } = this;
      const least = kind === "weight" ? 1 : 0;
      const range = () => ({ error: say("range", { least, most: this.write(MOST[kind] / this.unit(column)) }) });
      let plain = text.normalize("NFKC").trim().replace(/^'/, "");
      if (plain === "" || plain === "-" || plain === "–") return WHOLE.includes(kind) && kind !== "cards" ? range() : { value: null };
      let unit = 1;
      if (kind === "memory") {
        const found = /^(.*?)\s*(mib|gib|tib|mi|gi|ti|m|g|t)$/i.exec(plain);
        if (found) { plain = found[1]; unit = { m: 1 / 1024, g: 1, t: 1024 }[found[2][0].toLowerCase()]; }
      } else if (kind === "cpu" && /m$/i.test(plain)) { plain = plain.slice(0, -1).trim(); unit = 1 / 1000; }
      if (/^[-−]\s*\d/.test(plain)) return range();
      if (GROUPED.test(plain)) plain = plain.replace(/[,\s_'’]/g, "");
      else if (/^[\d.,]*\d[\d.,]*$/.test(plain) && plain.includes(",")) return { error: say("comma", { text: text.trim() }) };
      else if (WHOLE.includes(kind) && /^\d{1,3}(\.\d{3})+$/.test(plain)) return { error: say("dot", { text: text.trim(), digits: plain.replace(/\./g, "") }) };
      if (!/^\d+(\.\d+)?$/.test(plain)) return { error: say("not_number", { text: text.trim() }) };
      const figure = Number(plain) * unit * this.unit(column);
      if (WHOLE.includes(kind) && !Number.isInteger(figure)) return { error: say(kind === "cards" ? "whole" : "whole_number") };
      const whole = Math.round(figure);
      return whole < least || whole > MOST[kind] ? range() : { value: whole };
    }
  }

  window.QuotaFigures = QuotaFigures;
})();
