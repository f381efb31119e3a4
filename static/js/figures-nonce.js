// plotly.js makes style elements of its own and knows no nonce: each one made here carries the nonce of this page, so that
// the content security policy needs no "unsafe-inline". It runs before plotly.js, which makes the first while it loads.
(() => {
  "use strict";
  const { nonce } = document.currentScript;
  const make = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const element = make(name, options);
    if (String(name).toLowerCase() === "style") element.nonce = nonce;
    return element;
  };
})();
