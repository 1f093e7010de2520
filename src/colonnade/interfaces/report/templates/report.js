"use strict";
(() => {
  // The text beside the pointer.
  const tip = document.getElementById("tip");
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const width = document.documentElement.clientWidth, height = window.innerHeight;
    tip.style.left = Math.max(4, Math.min(x + 14, width - box.width - 4)) + "px";
    tip.style.top = Math.max(4, y + 18 + box.height > height ? y - box.height - 12 : y + 18) + "px";
  };
  const hide = () => { tip.hidden = true; };

  // Cells of the heat maps: row, column, value and interval.
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const place = new Map();
  let count = 0;
  for (let k = 0; k < facts.filled.length; k++) if (facts.filled[k] === "1") place.set(k, count++);
  const number = (x) => (x === null || x === undefined ? "unknown" : String(x));
  const cell = (i, j) => {
    const k = i * facts.columns.length + j, at = place.get(k);
    const head = `row ${facts.rows[i]}, column ${facts.columns[j]}: `;
    if (at !== undefined) {
      const ends = facts.low.length ? `, 90 % interval ${number(facts.low[at])} to ${number(facts.high[at])}` : "";
      return head + `filled, ${number(facts.values[k])}` + ends;
    }
    return head + (facts.values[k] === null ? "not filled" : `known, ${number(facts.values[k])}`);
  };
  const at = (event, image) => {
    const box = image.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top) / box.height * facts.rows.length);
    const j = Math.floor((event.clientX - box.left) / box.width * facts.columns.length);
    const inside = i >= 0 && j >= 0 && i < facts.rows.length && j < facts.columns.length;
    return inside ? cell(i, j) : null;
  };
  document.querySelectorAll("#maps img").forEach((image) => {
    const move = (event) => {
      const text = at(event, image);
      if (text) show(text, event.clientX, event.clientY); else hide();
    };
    image.addEventListener("pointermove", move);
    image.addEventListener("pointerdown", move);
    image.addEventListener("pointerleave", hide);
  });
  document.addEventListener("pointerover", (event) => {
    const text = event.target.getAttribute && event.target.getAttribute("data-tip");
    if (text) show(text, event.clientX, event.clientY);
  });
  document.addEventListener("pointerout", (event) => {
    if (event.target.hasAttribute && event.target.hasAttribute("data-tip")) hide();
  });
  window.addEventListener("scroll", hide, { passive: true });

  // The table of columns, sorted by a click on a heading.
  const table = document.getElementById("table");
  if (!table) return;
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, k) => {
    const found = parseFloat(row.cells[k].dataset.sort);
    return Number.isNaN(found) ? -Infinity : found;
  };
  heads.forEach((head, k) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => sign * (value(a, k) < value(b, k) ? -1 : value(a, k) > value(b, k) ? 1 : 0));
      body.append(...rows);
    });
  });
})();
