// Tables with the class sortable: a button in each head sorts the rows by the cells' data-value, and again in reverse.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.dataset.better === "lower" || column === 0 ? "ascending" : "descending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const one of heads) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const key = (row) => { const cell = row.cells[column]; return column ? parseFloat(cell.dataset.value) : cell.textContent.trim(); };
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (typeof x === "string") return sign * x.localeCompare(y);
        return Number.isNaN(x) - Number.isNaN(y) || (Number.isNaN(x) ? 0 : sign * (x - y)); // rows without a number stay last
      };
      const rows = [...body.rows], fixed = rows.filter((row) => row.hasAttribute("data-fixed"));
      body.append(...rows.filter((row) => !fixed.includes(row)).sort(compare), ...fixed);
    });
  });
}
