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
  let sorted = { key: "", direction: "" }, family = usual.family, shown = [], columns = [], told = [], printing = false;

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
    columns = held.filter((head) => printing || ((family === "all" || head.dataset.family === family)
      && (byId("parts").checked || !head.dataset.part) && filled.get(head) >= least));
    scores.sort((a, b) => compare(a.dataset.family, b.dataset.family) || filled.get(b) - filled.get(a)); // stable: then by label
    columns.sort((a, b) => scores.indexOf(a) - scores.indexOf(b));
    const places = heads.filter((head) => head.dataset.family === undefined);
    // within a group the split, n and data of most lines are the same: those that are not stand in a column
    told = places.slice(1).filter((head) => new Set(shown.map((row) => text(row, head.dataset.key))).size > 1);
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
    drawViews();
    remember();
  }

  // ---- two scores against each other, two lines beside each other; chosen: what the reader asked for, by select
  const chosen = { x: "", y: "", first: "", second: "", ...(byId("over") && { over: "" }), ...(byId("line") && { line: "" }) };
  function fill(id, options, fallback) { // options: [value, text]
    const select = byId(id);
    select.replaceChildren();
    for (const [value, words] of options) option(select, value, words);
    select.value = options.some(([value]) => value === chosen[id]) ? chosen[id] : fallback;
    return select.value;
  }
  const score = (row, key) => (text(row, key) === "" ? null : Number(text(row, key)));
  const name = (head) => head.textContent.trim();
  const axis = (id, rows, kind) => {
    const fit = [...line.cells].filter((head) => (!kind || head.dataset.family === kind) && head.dataset.better && !head.dataset.part && rows.some((row) => text(row, head.dataset.key) !== ""));
    const key = fill(id, fit.map((head) => [head.dataset.key, name(head)]), fit.length ? fit[0].dataset.key : "");
    return fit.find((head) => head.dataset.key === key);
  };
  function drawViews() {
    const own = rows.filter((row) => shown.includes(row)), names = new Map(); // each by a name of its own, in the neutral order
    for (const row of own) {
      const words = text(row, "system") + " · " + at(row, "system").querySelector("summary").textContent, used = new Set(names.values());
      let unique = words;
      for (let k = 2; used.has(unique); k += 1) unique = words + " #" + k;
      names.set(row, unique);
    }
    const axes = [axis("x", own, "agreement"), axis("y", own, "faithfulness")];
    const drawn = axes.every(Boolean) && byId("dataset").value ? own.filter((row) => axes.every((head) => score(row, head.dataset.key) !== null)) : [];
    const points = drawn.map((row) => ({ name: text(row, "system"), reported: row.dataset.status === "self-reported", x: score(row, axes[0].dataset.key), y: score(row, axes[1].dataset.key) }));
    const costs = addSizes(points, drawn);
    byId("scatter").hidden = !points.length;
    if (points.length) {
      const signs = axes.map((head) => (head.dataset.better === "lower" ? -1 : 1)), [front, left] = findTrustedFront(points, signs), svg = byId("points");
      drawScatter(svg, points, front, signs, axes.map(name));
      svg.setAttribute("aria-label", name(axes[1]) + " against " + name(axes[0]) + " of " + points.length + " lines");
      byId("front").textContent = "Pareto front (no other line is better in one score and at least as good in the other): " + front.map((point) => point.name).join(", ") + ". It is that of the numbers as they stand: no difference is tested." + left + " " + costs;
    } else byId("front").textContent = byId("dataset").value ? "No line shown has a score of each." : "Choose a group: lines of different groups are not comparable.";
    if (byId("over")) drawHistory(own.filter((row) => row.dataset.date));
    if (byId("line")) drawLine(names);
    const options = [["", "choose a line"], ...[...names.values()].map((one) => [one, one])];
    const pair = ["first", "second"].map((id) => fill(id, options, "")).map((wanted) => own.find((row) => names.get(row) === wanted));
    const both = pair.every(Boolean) && pair[0] !== pair[1], alike = both && pair[0].dataset.group === pair[1].dataset.group;
    byId("pair-shown").hidden = !alike;
    const tested = alike && pair.every((row) => row.dataset.status === "verified");
    const scores = alike ? columns.map((head) => head.dataset.key).map((key) => [name(heads.find((head) => head.dataset.key === key)), pair.map((row) => score(row, key)), pair.map((row) => tested && at(row, key).classList.contains("better"))]).filter(([, values]) => !values.every(lost)) : [];
    if (alike) drawPair(byId("pair"), pair.map((row) => names.get(row)), scores);
    const starred = scores.some(([, , better]) => better.some(Boolean));
    byId("compared").textContent = alike ? (starred ? "★ better than every other verified line of the group, by its verdict. The other differences have no verdict here" : "These differences have no verdict here") + ": eraser-hub compare tests two systems." : both ? "The two lines are of different groups, and so not comparable." : "Choose two lines: the scores of the open tab, and their difference (first less second).";
  }
  // ---- a score of the group's lines by the day of their predictions; the front of the early and the good is the best so far
  function drawHistory(dated) {
    const head = axis("over", dated, ""), key = head && head.dataset.key;
    const points = head && byId("dataset").value ? dated.filter((row) => score(row, key) !== null).map((row) => ({ name: text(row, "system"), reported: row.dataset.status === "self-reported", x: Date.parse(row.dataset.date) / 864e5, y: score(row, key) })) : [];
    byId("history").hidden = !points.length;
    byId("best").textContent = byId("dataset").value ? "No line shown has a date and a score." : "Choose a group: lines of different groups are not comparable.";
    if (!points.length) return;
    const signs = [-1, head.dataset.better === "lower" ? -1 : 1], [front, left] = findTrustedFront(points, signs), svg = byId("dates");
    drawScatter(svg, points, front, signs, ["day of the predictions", name(head)], asDay);
    svg.setAttribute("aria-label", name(head) + " of " + points.length + " lines by the day of their predictions");
    const best = [...front].sort((a, b) => a.x - b.x).map((point) => asDay(point.x) + " " + point.name + " " + number(point.y));
    byId("best").textContent = "Best of its day and before: " + best.join(", ") + ". No difference is tested." + left;
  }

  // ---- a line's rationales on the texts of its group, which are unpacked when looked at
  const holders = [...document.querySelectorAll("script[data-group]")], unpacked = new Map();
  function load(group) {
    if (!unpacked.has(group)) {
      const holder = holders.find((one) => one.dataset.group === group);
      unpacked.set(group, unpack(holder.id.replace("index", "packed")).then((data) => [JSON.parse(holder.textContent), data]));
    }
    return unpacked.get(group);
  }
  async function drawLine(names) {
    const options = [...names].filter(([row]) => row.dataset.texts !== undefined).map(([, one]) => [one, one]);
    const wanted = fill("line", [["", options.length ? "choose a system" : "no system shown has texts"], ...options], "");
    const row = [...names.keys()].find((one) => names.get(one) === wanted && wanted);
    byId("legend").hidden = !row;
    byId("about").textContent = row ? "" : "Texts with the gold and a verified system's rationales.";
    if (!row) { byId("texts").replaceChildren(); return; }
    const [index, data] = await load(row.dataset.group);
    if (byId("line").value !== wanted) return; // a later choice overtook this one
    drawTexts(byId("texts"), index, data, Number(row.dataset.texts));
    byId("about").textContent = data.rows.length + " texts, drawn by the digests of their ids, the same for every system of the group.";
  }
  for (const id of Object.keys(chosen)) byId(id).addEventListener("change", () => { chosen[id] = byId(id).value; drawViews(); remember(); });
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
  // &x=KEY&y=KEY&over=KEY&line=LINE&first=LINE&second=LINE
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
    for (const [id, value] of Object.entries(chosen)) if (value && byId(id).value === value) parts.push(id + "=" + encodeURIComponent(value));
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
    for (const id of Object.keys(chosen)) chosen[id] = given.get(id) || "";
    const head = heads.find((one) => one.dataset.key === key), tab = tabs.find((one) => one.dataset.family === given.get("family"));
    family = tab ? tab.dataset.family : usual.family;
    sort(head || heads[0], head ? direction : "");
    open(family);
  }

  // lines of [text, small print, is better], as the report's tables are saved
  function readShown() {
    const own = [...told, ...columns];
    const lines = [...body.rows].filter((row) => !row.hidden).map((row) => {
      const source = at(row, "system").querySelector("summary").textContent;
      return [[text(row, "system"), "", false], [source, "", false], ...own.map((head) => {
        const cell = at(row, head.dataset.key), small = cell.querySelector("small"), print = small ? small.textContent : "";
        return [cell.textContent.slice(0, cell.textContent.length - print.length).trim(), print.trim(), cell.classList.contains("better")];
      })];
    });
    return [[["System", "", false], ["Source", "", false], ...own.map((head) => [head.textContent.trim(), "", false])], ...lines];
  }
  function toJson() {
    const lines = [...body.rows].filter((row) => !row.hidden).map((row) => {
      const held = columns.filter((head) => text(row, head.dataset.key) !== "");
      const small = held.map((head) => [head.dataset.key, at(row, head.dataset.key).querySelector("small")]).filter(([, node]) => node);
      return {
        system: text(row, "system"), source: at(row, "system").querySelector("summary").textContent,
        settings: at(row, "system").querySelector("p").textContent, group: row.dataset.group, status: row.dataset.status,
        split: text(row, "split"), instances: Number(text(row, "instances")) || null, data: text(row, "data"),
        scores: Object.fromEntries(held.map((head) => [head.dataset.key, Number(text(row, head.dataset.key))])),
        small_print: Object.fromEntries(small.map(([key, node]) => [key, node.textContent.trim()])),
        better: held.filter((head) => at(row, head.dataset.key).classList.contains("better")).map((head) => head.dataset.key),
      };
    });
    return JSON.stringify({ shown: byId("found").textContent, lines }, null, 1) + "\n";
  }
  const saved = (format) => () => { const [suffix, type, write] = FORMATS[format]; save("board." + suffix, type, write(readShown())); };
  byId("export").append(makeBar([
    ["CSV", "Save what is shown as CSV", saved("CSV")],
    ["JSON", "Save what is shown as JSON", () => save("board.json", "application/json", toJson())],
    ["LaTeX", "Save what is shown as LaTeX", saved("LaTeX")],
  ]));

  byId("pair").parentNode.after(makeBar(Object.entries(FORMATS).map(([format, [suffix, type, write]]) => [format, "Save the two lines as " + format, () => save("lines." + suffix, type, write(read(byId("pair"))))])));
  if (byId("over")) byId("history").append(saveFigure(byId("dates"), "history"));
  byId("scatter").append(saveFigure(byId("points"), "scatter"));

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
  narrow.addEventListener("change", () => { arrange(); drawViews(); });
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
