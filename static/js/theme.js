// Runs before the first paint, so that the page never flashes in the wrong theme, on each page, that of the sign-in too.
(() => {
  "use strict";
  // The browser's zone is the reader's zone unless the profile names another one: known before the first page with times.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.includes(`tz=${encodeURIComponent(zone)}`)) {
    document.cookie = `tz=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  }
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const paper = window.matchMedia("print");
  const apply = () => {
    const choice = root.dataset.themeChoice;
    // Paper is white, whatever the screen is.
    const theme = paper.matches ? "light" : choice === "light" || choice === "dark" ? choice : system.matches ? "dark" : "light";
    if (root.dataset.bsTheme !== theme) {
      root.dataset.bsTheme = theme;
      document.dispatchEvent(new CustomEvent("themechange"));
    }
  };
  window.setTheme = (choice) => {
    root.dataset.themeChoice = choice;
    document.cookie = `theme=${choice}; path=/; max-age=31536000; samesite=lax`;
    document.querySelectorAll("[data-theme-set]").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.themeSet === choice));
    });
    apply();
  };
  system.addEventListener("change", apply);
  paper.addEventListener("change", apply);
  apply();
})();
