"use strict";
// Choosing and sorting of the results board; the table itself is in the page and readable without this script.
(function () {
  const byId = (id) => document.getElementById(id);
  const table = byId("board"), body = table.tBodies[0], line = table.tHead.rows[0];
  const heads = [...line.cells], rows = [...body.rows];
  const cells = new Map(rows.map((row) => [row, new Map([...row.cells].map((cell) => [cell.dataset.key, cell]))]));
  const at = (row, key) => cells.get(row).get(key);
  const text = (row, key) => at(row, key).dataset.value ?? at(row, key).textContent;
  const compare = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;
  let sorted = { key: "", direction: "" };

  function sort(head, direction) {
    const key = head.dataset.key, numeric = head.classList.contains("n");
    const order = [...rows]; // as they came: the neutral order
    if (direction) {
      const sign = direction === "ascending" ? 1 : -1;
      order.sort((a, b) => {
        const x = text(a, key), y = text(b, key);
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
  function next(head) { // the best first, then the other way round, then the neutral order
    const first = head.classList.contains("n") && head.dataset.better !== "lower" ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    if (sorted.key !== head.dataset.key || !sorted.direction) return first;
    return sorted.direction === first ? second : "";
  }

  function arrange(shown) {
    const families = new Set([...document.querySelectorAll(".family:checked")].map((box) => box.value));
    const filled = new Map(heads.map((head) => [head, shown.filter((row) => text(row, head.dataset.key) !== "").length]));
    const scores = heads.filter((head) => head.dataset.family !== undefined);
    const held = scores.filter((head) => filled.get(head));
    const least = byId("dataset").value && !byId("sparse").checked ? shown.length / 3 : 0;
    const columns = held.filter((head) => families.has(head.dataset.family) && (byId("parts").checked || !head.dataset.part)
      && filled.get(head) >= least);
    scores.sort((a, b) => compare(a.dataset.family, b.dataset.family) || filled.get(b) - filled.get(a)); // stable: then by label
    const places = heads.filter((head) => head.dataset.family === undefined);
    // within a group the split, n and data of most lines are the same: those that are not stand in a column
    const told = places.slice(1).filter((head) => new Set(shown.map((row) => text(row, head.dataset.key))).size > 1);
    const visible = new Set([heads[0], ...told, ...columns]);
    const order = [...places, ...scores];
    line.replaceChildren(...order);
    for (const head of heads) head.hidden = !visible.has(head);
    for (const row of rows) {
      row.replaceChildren(...order.map((head) => at(row, head.dataset.key)));
      for (const head of heads) at(row, head.dataset.key).hidden = head.hidden;
    }
    byId("found").textContent = shown.length + " of " + rows.length + " lines, " + columns.length + " of " + held.length + " scores" + common(shown, places.slice(2));
  }
  function common(shown, places) { // what all lines have alike
    const values = places.map((head) => [head, [...new Set(shown.map((row) => text(row, head.dataset.key)))]]);
    return values.filter(([, own]) => own.length === 1 && own[0]).map(([head, own]) => " · " + head.textContent.trim() + " " + own[0]).join("");
  }
  function filter() {
    const dataset = byId("dataset").value, kind = byId("kind").value, words = byId("find").value.toLowerCase();
    for (const row of rows) {
      row.hidden = !((!dataset || row.dataset.group === dataset) && (!kind || row.dataset.status === kind)
        && (!words || (text(row, "system") + " " + at(row, "system").querySelector("summary").textContent).toLowerCase().includes(words)));
    }
    arrange(rows.filter((row) => !row.hidden));
  }
  for (const head of heads) head.querySelector("button").addEventListener("click", () => sort(head, next(head)));
  for (const id of ["dataset", "kind", "parts", "sparse"]) byId(id).addEventListener("change", filter);
  byId("find").addEventListener("input", filter);
  for (const box of document.querySelectorAll(".family")) box.addEventListener("change", filter);
  byId("reset").addEventListener("click", () => sort(heads[0], ""));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const open of body.querySelectorAll("details[open]")) open.open = false;
  });
  filter();
  document.documentElement.dataset.ready = "yes";
})();
