// The editor of a tide plan: layers and lines come and go without a page load, a dial moves the times with mouse, finger
// or arrow keys, and the week is asked for anew after each change. Without this script the form works by itself.
(() => {
  "use strict";
  const form = document.getElementById("plan-form");
  if (!form) return;
  const DAY = 24 * 60;
  const STEP = 15;
  const NS = "http://www.w3.org/2000/svg";
  const layers = document.getElementById("layers");
  const week = document.getElementById("week");

  // Minutes after midnight; null for what is no time of day: then the dial shows no stretch, and the form says what is wrong.
  const minutes = (text) => {
    const found = /^(\d{1,2}):([0-5]\d)$/.exec(text.trim());
    const value = found ? Number(found[1]) * 60 + Number(found[2]) : null;
    return value === null || value > DAY ? null : value;
  };
  const clock = (value) => { const m = ((value % DAY) + DAY) % DAY; return `${String(Math.floor(m / 60)).padStart(2, "0")}:${String(m % 60).padStart(2, "0")}`; };
  const shape = (name, attributes) => {
    const el = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) el.setAttribute(key, value);
    return el;
  };
  const percent = (minute) => `${(minute / DAY) * 100}%`;

  // --- the week ------------------------------------------------------------------------------------------------------
  let timer = 0;
  let asked = 0;
  const ask = () => { clearTimeout(timer); timer = setTimeout(fetchWeek, 350); };
  const fetchWeek = async () => {
    const number = ++asked;
    const answer = await fetch(form.dataset.week, { method: "POST", body: new FormData(form), credentials: "same-origin" });
    if (!answer.ok || number !== asked) return;
    const open = week.querySelector("details")?.open;
    week.replaceChildren(document.createRange().createContextualFragment(await answer.text()));
    if (open) week.querySelector("details")?.setAttribute("open", "");
  };
  form.addEventListener("input", ask);
  form.addEventListener("change", ask);

  // --- the dial ------------------------------------------------------------------------------------------------------
  const dial = (layer) => {
    const place = layer.querySelector("[data-dial]");
    const field = { start: layer.querySelector('[data-time="start"]'), end: layer.querySelector('[data-time="end"]') };
    const svg = shape("svg", { width: "100%", height: "48" });
    svg.append(shape("rect", { class: "ground", x: "0", y: "6", width: "100%", height: "20", rx: "4" }));
    const first = shape("rect", { class: "open", y: "6", height: "20" });
    const second = shape("rect", { class: "open", y: "6", height: "20" });
    svg.append(first, second);
    for (const hour of [0, 6, 12, 18, 24]) {
      const text = shape("text", { class: "hour", x: percent(hour * 60), y: "42", "text-anchor": hour === 0 ? "start" : hour === 24 ? "end" : "middle" });
      text.textContent = `${String(hour).padStart(2, "0")}:00`;
      svg.append(text);
    }
    const grips = {};
    for (const which of ["start", "end"]) {
      const grip = shape("circle", { class: "grip", cy: "16", r: "9", tabindex: "0", role: "slider", "aria-label": which === "start" ? form.dataset.from : form.dataset.to, "aria-valuemin": "0", "aria-valuemax": String(DAY) });
      grips[which] = grip;
      svg.append(grip);
      const move = (value) => {
        field[which].value = clock(Math.round(value / STEP) * STEP);
        field[which].dispatchEvent(new Event("input", { bubbles: true }));
        draw();
      };
      grip.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -STEP, ArrowDown: -STEP, ArrowRight: STEP, ArrowUp: STEP, PageUp: 60, PageDown: -60 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        move((minutes(field[which].value) ?? 0) + by);
      });
      grip.addEventListener("pointerdown", (event) => { event.preventDefault(); grip.setPointerCapture(event.pointerId); grip.focus(); });
      grip.addEventListener("pointermove", (event) => {
        if (!grip.hasPointerCapture(event.pointerId)) return;
        const box = svg.getBoundingClientRect();
        const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
        move(Math.min(share * DAY, which === "start" ? DAY - STEP : DAY));
      });
    }
    const draw = () => {
      const start = minutes(field.start.value);
      let end = minutes(field.end.value);
      if (end === 0) end = DAY;
      const whole = start !== null && end !== null;
      const over = whole && end <= start;
      first.setAttribute("x", percent(start ?? 0));
      first.setAttribute("width", whole ? percent((over ? DAY : end) - start) : "0");
      second.setAttribute("x", "0");
      second.setAttribute("width", over ? percent(end) : "0");
      for (const [which, value] of [["start", start], ["end", end]]) {
        grips[which].classList.toggle("unset", value === null);
        field[which].classList.toggle("is-invalid", value === null);
        if (value === null) continue;
        grips[which].setAttribute("cx", percent(value));
        grips[which].setAttribute("aria-valuenow", String(value));
        grips[which].setAttribute("aria-valuetext", clock(value));
      }
    };
    field.start.addEventListener("input", draw);
    field.end.addEventListener("input", draw);
    place.replaceChildren(svg);
    draw();
  };
  for (const layer of layers.querySelectorAll("[data-layer]")) dial(layer);

  // --- layers and lines come and go ----------------------------------------------------------------------------------
  const model = layers.querySelector("[data-layer]")?.cloneNode(true);
  let next = Date.now() % 1000000;
  const renumber = (root, from, to) => {
    for (const el of [root, ...root.querySelectorAll("*")]) {
      for (const name of ["id", "name", "for", "value", "data-layer", "data-line"]) {
        const value = el.getAttribute?.(name);
        if (value !== null && value !== undefined) {
          if (value === from.bare && name !== "for" && (el.type === "hidden" || name.startsWith("data-"))) el.setAttribute(name, to.bare);
          else if (value.startsWith(from.prefix)) el.setAttribute(name, to.prefix + value.slice(from.prefix.length));
        }
      }
    }
  };
  const clear = (line) => { line.querySelector("select").value = ""; line.querySelector("input[type=number]").value = ""; };
  const freshLine = (layer) => {
    const known = layer.querySelector("[data-line]") || model.querySelector("[data-line]");
    const line = known.cloneNode(true);
    const owner = layer.dataset.layer;
    const old = line.dataset.line;
    const was = line.querySelector("select").name.split("-")[0];
    const number = String(next++);
    line.querySelector("input[type=hidden]").name = `l${owner}-line`;
    renumber(line, { bare: old, prefix: `${was}-x${old}-` }, { bare: number, prefix: `l${owner}-x${number}-` });
    line.querySelector(".line-error")?.remove();
    line.querySelector("[data-drop]").value = `drop_line:${owner}.${number}`;
    clear(line);
    return line;
  };
  const freshLayer = () => {
    const layer = model.cloneNode(true);
    const old = layer.dataset.layer;
    const number = String(next++);
    for (const extra of [...layer.querySelectorAll("[data-line]")].slice(1)) extra.remove();
    for (const extra of layer.querySelectorAll(".banner, .text-danger, [data-ended]")) extra.remove();
    for (const field of layer.querySelectorAll(".is-invalid")) field.classList.remove("is-invalid");
    layer.querySelector("input[type=hidden][name=layer]").value = number;
    layer.dataset.layer = number;
    renumber(layer, { bare: "", prefix: `l${old}-` }, { bare: "", prefix: `l${number}-` });
    for (const button of layer.querySelectorAll("button[name=act]")) button.value = button.value.replace(`:${old}`, `:${number}`);
    layer.querySelector(`[name="l${number}-name"]`).value = "";
    for (const line of layer.querySelectorAll("[data-line]")) clear(line);
    return layer;
  };
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add],[data-drop]");
    if (!button || (!model && button.dataset.add)) return;
    event.preventDefault();
    const layer = button.closest("[data-layer]");
    if (button.dataset.add === "layer") {
      const made = freshLayer();
      layers.append(made);
      dial(made);
      made.querySelector("input:not([type=hidden])").focus();
    } else if (button.dataset.add === "line") {
      const line = freshLine(layer);
      layer.querySelector("[data-lines]").append(line);
      line.querySelector("select").focus();
    } else if (button.dataset.drop === "line") {
      button.closest("[data-line]").remove();
    } else {
      layer.remove();
    }
    ask();
  });
})();
