"use strict";
// Choosing and sorting of the results board; the table itself is in the page and readable without this script.
(function () {
  const table = byId("board"), body = table.tBodies[0], line = table.tHead.rows[0];
  const heads = [...line.cells], rows = [...body.rows];
  const cells = new Map(rows.map((row) => [row, new Map([...row.cells].map((cell) => [cell.dataset.key, cell]))]));
  const at = (row, key) => cells.get(row).get(key);
  const text = (row, key) => at(row, key).dataset.value ?? at(row, key).textContent;
  const compare = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;
  const tabs = [...document.querySelectorAll("[role=tab]")], narrow = matchMedia("(max-width: 40rem)");
  const usual = { group: byId("dataset").value, family: "all" };
  let sorted = { key: "", direction: "" }, family = usual.family, shown = [], printing = false;

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
    if (order.some((row, k) => body.rows[k] !== row)) body.replaceChildren(...order);
    remember();
  }
  function next(head) { // the best first, then the other way round, then the neutral order
    const first = head.classList.contains("n") && head.dataset.better !== "lower" ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    if (sorted.key !== head.dataset.key || !sorted.direction) return first;
    return sorted.direction === first ? second : "";
  }

  function arrange() {
    const filled = new Map(heads.map((head) => [head, shown.filter((row) => text(row, head.dataset.key) !== "").length]));
    const scores = heads.filter((head) => head.dataset.family !== undefined);
    const held = scores.filter((head) => filled.get(head));
    const least = byId("dataset").value && !byId("sparse").checked ? shown.length / 3 : 0;
    const columns = held.filter((head) => printing || ((family === "all" || head.dataset.family === family)
      && (byId("parts").checked || !head.dataset.part) && filled.get(head) >= least));
    scores.sort((a, b) => compare(a.dataset.family, b.dataset.family) || filled.get(b) - filled.get(a)); // stable: then by label
    columns.sort((a, b) => scores.indexOf(a) - scores.indexOf(b));
    const places = heads.filter((head) => head.dataset.family === undefined);
    // within a group the split, n and data of most lines are the same: those that are not stand in a column
    const told = places.slice(1).filter((head) => new Set(shown.map((row) => text(row, head.dataset.key))).size > 1);
    const visible = new Set([heads[0], ...told, ...columns]);
    // in a narrow window the first scores stand beside the system
    const order = narrow.matches ? [places[0], ...scores, ...places.slice(1)] : [...places, ...scores];
    const moved = order.some((head, k) => line.cells[k] !== head);
    if (moved) line.replaceChildren(...order);
    for (const head of heads) head.hidden = !visible.has(head);
    for (const row of rows) {
      if (moved) row.replaceChildren(...order.map((head) => at(row, head.dataset.key)));
      for (const head of heads) if (at(row, head.dataset.key).hidden !== head.hidden) at(row, head.dataset.key).hidden = head.hidden;
    }
    byId("found").textContent = shown.length + " of " + rows.length + " lines, " + columns.length + " of " + held.length + " scores" + common(places.slice(1));
  }
  function common(places) { // what all lines have alike
    const values = places.map((head) => [head, [...new Set(shown.map((row) => text(row, head.dataset.key)))]]);
    return values.filter(([, own]) => own.length === 1 && own[0]).map(([head, own]) => " · " + head.textContent.trim() + " " + own[0]).join("");
  }
  function filter() {
    const dataset = byId("dataset").value, kind = byId("kind").value, words = byId("find").value.toLowerCase();
    for (const row of rows) {
      row.hidden = !((!dataset || row.dataset.group === dataset) && (printing || ((!kind || row.dataset.status === kind)
        && (!words || (text(row, "system") + " " + at(row, "system").querySelector("summary").textContent).toLowerCase().includes(words)))));
    }
    shown = rows.filter((row) => !row.hidden);
    arrange();
    remember();
  }

  function open(name) {
    family = name;
    for (const tab of tabs) {
      const own = tab.dataset.family === family;
      tab.setAttribute("aria-selected", String(own));
      tab.tabIndex = own ? 0 : -1;
      if (own) byId("board-scroll").setAttribute("aria-labelledby", tab.id);
    }
    filter();
  }

  // What is shown, as the address has it: #group=..&family=..&status=..&find=..&parts=1&sparse=1&sort=KEY:descending
  const CONTROLS = { group: "dataset", status: "kind", find: "find", parts: "parts", sparse: "sparse" };
  function remember() {
    if (printing) return;
    const parts = [];
    for (const [name, id] of Object.entries(CONTROLS)) {
      const control = byId(id), value = control.type === "checkbox" ? (control.checked ? "1" : "") : control.value;
      if (value !== (usual[name] || "")) parts.push(name + "=" + encodeURIComponent(value));
    }
    if (family !== usual.family) parts.push("family=" + encodeURIComponent(family));
    if (sorted.direction) parts.push("sort=" + encodeURIComponent(sorted.key) + ":" + sorted.direction);
    const address = parts.length ? "#" + parts.join("&") : "";
    if (address === location.hash) return;
    try { history.replaceState(null, "", address || location.href.split("#")[0]); } catch { /* a page without a history */ }
  }
  function restore(hash) {
    const given = new Map();
    for (const part of hash.replace(/^#/, "").split("&")) {
      const place = part.indexOf("=");
      try { if (place > 0) given.set(part.slice(0, place), decodeURIComponent(part.slice(place + 1))); } catch { /* no text */ }
    }
    for (const [name, id] of Object.entries(CONTROLS)) {
      const control = byId(id), value = given.has(name) ? given.get(name) : usual[name] || "";
      if (control.type === "checkbox") control.checked = value === "1";
      else control.value = value;
      if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = usual[name] || "";
    }
    const [, key, direction] = /^(.*):(ascending|descending)$/.exec(given.get("sort") || "") || [];
    const head = heads.find((one) => one.dataset.key === key), tab = tabs.find((one) => one.dataset.family === given.get("family"));
    family = tab ? tab.dataset.family : usual.family;
    sort(head || heads[0], head ? direction : "");
    open(family);
  }

  for (const head of heads) head.querySelector("button").addEventListener("click", () => sort(head, next(head)));
  for (const id of ["dataset", "kind", "parts", "sparse"]) byId(id).addEventListener("change", filter);
  byId("find").addEventListener("input", filter);
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => open(tab.dataset.family));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (step === undefined) return;
      const other = tabs[(step + tabs.length) % tabs.length];
      open(other.dataset.family);
      other.focus();
      event.preventDefault();
    });
  }
  byId("reset").addEventListener("click", () => sort(heads[0], ""));
  narrow.addEventListener("change", arrange);
  addEventListener("hashchange", () => restore(location.hash));
  // on paper: every line and score of the open group
  for (const [event, value] of [["beforeprint", true], ["afterprint", false]]) addEventListener(event, () => {
    printing = value;
    if (printing) for (const head of heads) for (const row of rows) at(row, head.dataset.key).dataset.head = head.textContent.trim();
    filter();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const open of body.querySelectorAll("details[open]")) open.open = false;
  });
  restore(location.hash);
  document.documentElement.dataset.ready = "yes";
})();
