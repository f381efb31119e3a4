// What pages use of the dashboard kit's script: drop-downs, and the menu of a narrow screen.
(() => {
  "use strict";
  const shown = () => document.querySelector('[data-bs-toggle="dropdown"][aria-expanded="true"]');
  const menuOf = (button) => button.parentElement.querySelector(".dropdown-menu");
  const set = (button, open) => {
    menuOf(button).classList.toggle("show", open);
    // The kit's style places a menu by this attribute.
    menuOf(button).dataset.bsPopper = "static";
    button.classList.toggle("show", open);
    button.setAttribute("aria-expanded", String(open));
  };
  const items = (button) => [...menuOf(button).querySelectorAll("a[href], button:not([disabled]), input")];

  document.addEventListener("click", (event) => {
    const fold = event.target.closest('[data-bs-toggle="collapse"]');
    if (fold) {
      const open = document.querySelector(fold.dataset.bsTarget).classList.toggle("show");
      fold.setAttribute("aria-expanded", String(open));
    }
    const before = shown();
    const button = event.target.closest('[data-bs-toggle="dropdown"]');
    if (before && before !== button && !event.target.closest("input, label, select")) set(before, false);
    if (button) set(button, button !== before);
  });
  document.addEventListener("keydown", (event) => {
    const button = shown() || (event.key === "ArrowDown" && event.target.closest?.('[data-bs-toggle="dropdown"]'));
    if (!button) return;
    if (event.key === "Escape") { set(button, false); button.focus(); return; }
    if (event.key === "Tab") { setTimeout(() => { if (!menuOf(button).contains(document.activeElement)) set(button, false); }); return; }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    set(button, true);
    const all = items(button);
    const at = all.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    all[Math.max(0, Math.min(all.length - 1, at))]?.focus();
  });
})();
