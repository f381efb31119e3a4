// What was typed and not yet sent, kept in this browser: window.QuotaDraft. A draft knows the tree that it was typed on,
// cell by cell, and whether it was sent.
(() => {
  "use strict";

  class QuotaDraft {
    // cells() lists [key, service, column, figure, base] of what is edited now.
    constructor(key, cells) {
      Object.assign(this, { key, cells, timer: 0, sent: false, version: 0 });
    }

    // An edit after the request says that the page was not left after all.
    keep() { this.sent = false; clearTimeout(this.timer); this.timer = setTimeout(() => this.keepNow(), 300); }

    keepNow() {
      clearTimeout(this.timer);
      // What is on its way to the server was kept as sent; nothing is armed anew behind it.
      if (this.sent) return;
      this.store(this.cells());
    }

    store(cells) {
      try {
        if (cells.length) localStorage.setItem(this.key, JSON.stringify({ version: this.version, at: Date.now(), sent: this.sent, cells }));
        else localStorage.removeItem(this.key);
      } catch { /* a full or forbidden storage: the page still warns before it is left */ }
    }

    // Should the answer never come, the draft is still here: the page of the change forgets it (console.js).
    send() {
      clearTimeout(this.timer);
      this.sent = true;
      this.store(this.cells());
    }

    drop() {
      clearTimeout(this.timer);
      try { localStorage.removeItem(this.key); } catch { /* see above */ }
    }

    // What was kept: { version, at, cells }, or null.
    read() {
      let draft = null;
      try { draft = JSON.parse(localStorage.getItem(this.key) || "null"); } catch { /* nothing that can be read */ }
      return draft?.cells?.length ? draft : null;
    }
  }

  window.QuotaDraft = QuotaDraft;
})();
