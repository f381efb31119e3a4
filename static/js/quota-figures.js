// How the figures of the quota editor are written and read: window.QuotaFigures.
(() => {
  "use strict";
  const UNIT = { cpu: 1000, memory: 1024 };
  const MOST = { cards: 10_000_000, cpu: 2 ** 50, memory: 2 ** 40, weight: 65_535, priority: 2 ** 31 - 1 };
  const WHOLE = ["cards", "weight", "priority"];
  const TWO_MEANINGS = /^(-?[1-9]\d{0,2})[.,](\d{3})$/;
  const PLAIN = /^-?(?:\d+|[1-9]\d{0,2}([, '’])\d{3}(?:\1\d{3})*)(?:\.\d+)?$/;
  const SCIENTIFIC = /^(-?\d)(?:[.,](\d+))?E\+?(\d{1,2})$/i;

  class QuotaFigures {
    constructor(columns, say) {
      const numbers = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 3 });
      Object.assign(this, { columns, say, write: (number) => numbers.format(number) });
    }

    unit(column) { return UNIT[this.columns[column].kind] || 1; }

    shown(column, figure) { return figure === null ? "" : this.write(figure / this.unit(column)); }

    // A fraction of three digits could be thousands, and a longer one be shortened: these are in the smaller unit.
    plain(column, figure) {
      const text = figure === null ? "" : String(figure / this.unit(column));
      return /\.\d{3}/.test(text) ? `${figure}${this.columns[column].kind === "cpu" ? "m" : "Mi"}` : text;
    }

    // As `number` of common/tables.py, for what is typed: which number a text means, or why it means none or two.
    static number(text) {
      const plain = text.normalize("NFKC").trim(), two = TWO_MEANINGS.exec(plain);
      if (two) return { why: "two", part: String(Number(`${two[1]}.${two[2]}`)), grouped: `${two[1]} ${two[2]}`, whole: two[1] + two[2] };
      if (PLAIN.test(plain)) return { number: Number(plain.replace(/[, '’]/g, "")) };
      const [found, first, digits = "", zeros] = SCIENTIFIC.exec(plain) || [];
      if (found && digits.length >= Number(zeros) && digits.length !== 3) return { number: Number(`${first}.${digits}E${zeros}`) };
      return { why: found ? "shortened" : "not_number" };
    }

    // Digits of any script, separators of thousands, and the units that people write.
    parse(column, text) {
      const { kind } = this.columns[column], { say } = this;
      const least = kind === "weight" ? 1 : 0;
      const range = () => ({ error: say("range", { least, most: this.write(MOST[kind] / this.unit(column)) }) });
      let plain = text.normalize("NFKC").trim().replace(/^'/, "");
      if (plain === "" || plain === "-" || plain === "–") return WHOLE.includes(kind) && kind !== "cards" ? range() : { value: null };
      let unit = 1;
      if (kind === "memory") {
        const found = /^(.*\d)\s*([kmgtpe])ib?$/i.exec(plain);
        if (found) { plain = found[1]; unit = 1024 ** ("kmgtpe".indexOf(found[2].toLowerCase()) - 2); }
      } else if (kind === "cpu" && /m$/i.test(plain)) { plain = plain.slice(0, -1).trim(); unit = 1 / 1000; }
      if (/^[-−]\s*\d/.test(plain)) return range();
      const { number, why, ...meanings } = QuotaFigures.number(plain);
      if (why) return { error: say(why, { text: text.trim(), ...meanings }) };
      const figure = number * unit * this.unit(column);
      if (WHOLE.includes(kind) && !Number.isInteger(figure)) return { error: say(kind === "cards" ? "whole" : "whole_number") };
      const whole = Math.round(figure);
      if (Math.abs(figure - whole) > 1e-6) return { error: say("too_fine") };
      return whole < least || whole > MOST[kind] ? range() : { value: whole };
    }
  }

  window.QuotaFigures = QuotaFigures;
})();
