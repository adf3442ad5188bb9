"use strict";
// Sorting and filtering of the results board; the table itself is in the page and readable without this script.
(function () {
  const table = document.getElementById("board");
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows];
  const column = new Map(heads.map((head, k) => [head.dataset.key, k]));
  const at = (row, key) => row.cells[column.get(key)];
  const compare = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;
  const byId = (id) => document.getElementById(id);
  let sorted = { key: "", direction: "" };

  function sort(key, direction) {
    const head = heads[column.get(key)];
    const numeric = head !== undefined && head.dataset.family !== undefined;
    const value = (row) => { const cell = at(row, key); return cell.dataset.value !== undefined ? cell.dataset.value : cell.textContent; };
    const order = [...rows].sort((a, b) => Number(a.dataset.place) - Number(b.dataset.place));
    if (direction) {
      const sign = direction === "ascending" ? 1 : -1;
      order.sort((a, b) => {
        const x = value(a), y = value(b);
        if ((x === "") !== (y === "")) return x === "" ? 1 : -1; // a line without the score stands last either way
        if (x === "") return 0;
        return sign * (numeric ? Number(x) - Number(y) : compare(x, y));
      });
    }
    sorted = { key, direction };
    for (const other of heads) other.removeAttribute("aria-sort");
    if (direction) head.setAttribute("aria-sort", direction);
    body.replaceChildren(...order);
  }
  function next(key) {
    const first = heads[column.get(key)].dataset.family !== undefined ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    if (sorted.key !== key || !sorted.direction) return first;
    return sorted.direction === first ? second : "";
  }
  for (const head of heads) head.querySelector("button").addEventListener("click", () => sort(head.dataset.key, next(head.dataset.key)));

  function filter() {
    const dataset = byId("dataset").value, kind = byId("kind").value, text = byId("find").value.toLowerCase();
    const families = new Set([...document.querySelectorAll(".family:checked")].map((box) => box.value));
    let found = 0;
    for (const row of rows) {
      const shown = (!dataset || row.dataset.dataset === dataset) && (!kind || row.dataset.kind === kind)
        && (!text || at(row, "system").textContent.toLowerCase().includes(text));
      row.hidden = !shown;
      if (shown) found += 1;
    }
    // a column that no shown line fills is folded away
    for (const head of heads) {
      const key = head.dataset.key, family = head.dataset.family;
      const hide = family !== undefined && (!families.has(family) || !rows.some((row) => !row.hidden && at(row, key).dataset.value));
      head.hidden = hide;
      for (const row of rows) at(row, key).hidden = hide;
    }
    byId("found").textContent = found + " of " + rows.length + " lines";
  }
  for (const id of ["dataset", "kind"]) byId(id).addEventListener("change", filter);
  byId("find").addEventListener("input", filter);
  for (const box of document.querySelectorAll(".family")) box.addEventListener("change", filter);
  byId("reset").addEventListener("click", () => sort("system", ""));
  filter();
  document.documentElement.dataset.ready = "yes";
})();
