// What was typed and not yet sent, kept in this browser: window.QuotaDraft. A draft knows the tree that it was typed on,
// cell by cell, and the mark under which it was sent: once the server has that mark, the draft is over for good.
(() => {
  "use strict";

  class QuotaDraft {
    // cells() lists [key, service, column, figure, base] of what is edited now.
    constructor(key, cells) {
      Object.assign(this, { key, cells, timer: 0, sent: "", version: 0 });
    }

    // An edit after the request says that the page was not left after all.
    keep() { this.sent = ""; clearTimeout(this.timer); this.timer = setTimeout(() => this.keepNow(), 300); }

    keepNow() {
      clearTimeout(this.timer);
      // What is on its way to the server was kept under its mark; nothing is armed anew behind it.
      if (this.sent) return;
      this.store(this.cells());
    }

    store(cells) {
      try {
        if (cells.length) localStorage.setItem(this.key, JSON.stringify({ version: this.version, at: Date.now(), sent: this.sent, cells }));
        else localStorage.removeItem(this.key);
      } catch { /* a full or forbidden storage: the page still warns before it is left */ }
    }

    // The mark goes with the request; should the answer never come, the draft is still here.
    send() {
      clearTimeout(this.timer);
      const bytes = crypto.getRandomValues(new Uint8Array(16));
      this.sent = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      this.store(this.cells());
      return this.sent;
    }

    drop() {
      clearTimeout(this.timer);
      try { localStorage.removeItem(this.key); } catch { /* see above */ }
    }

    // What was kept and has not arrived: { version, at, cells }, or null.
    read(arrived) {
      let draft = null;
      try { draft = JSON.parse(localStorage.getItem(this.key) || "null"); } catch { /* nothing that can be read */ }
      if (!draft?.cells?.length) return null;
      if (draft.sent && arrived.includes(draft.sent)) { this.drop(); return null; }
      return draft;
    }
  }

  window.QuotaDraft = QuotaDraft;
})();
