"use strict";
(() => {
  const table = document.getElementById("table");
  if (!table) return;
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, k) => {
    const number = parseFloat(row.cells[k].dataset.sort);
    return Number.isNaN(number) ? -Infinity : number;
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
