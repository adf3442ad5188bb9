// A scatter of two scores of the lines shown with its Pareto front, and two lines beside each other.
// points: [{name, x, y, size, words, dashed}]: size is the root of a share of the largest area, words say what it means; signs: 1 where higher is better, -1 where lower is
function findFront(points, signs) {
  const worth = (point) => [signs[0] * point.x, signs[1] * point.y];
  return points.filter((one) => {
    const [x, y] = worth(one);
    return !points.some((other) => { const [u, v] = worth(other); return u >= x && v >= y && (u > x || v > y); });
  });
}
// numbers that nobody has checked are in no front, unless there are no others; and the words that say so
function findTrustedFront(points, signs) {
  const checked = points.filter((point) => !point.reported), left = checked.length ? points.length - checked.length : 0;
  const words = left ? " Self-reported lines are not in it: " + left + " of " + points.length + "." : "";
  return [findFront(checked.length ? checked : points, signs), words];
}
function findTicks(low, high) {
  const raw = (high - low) / 6, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw), ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) ticks.push(k * step);
  return [ticks, Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)))];
}
const asDay = (day) => new Date(day * 864e5).toISOString().slice(0, 10);
// formatX: the text of a value across, in place of its number; its ticks are whole numbers
function drawScatter(svg, points, front, signs, titles, formatX) {
  const width = Math.max(300, Math.min(640, svg.parentNode.clientWidth || 640)), height = Math.round(width * 0.62);
  const box = { left: 50, right: width - 14, top: 22, bottom: height - 42 };
  const add = (tag, attributes, text) => {
    const node = document.createElementNS(svg.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  svg.replaceChildren();
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  const scale = (name, from, to) => {
    const values = points.map((point) => point[name]), low = Math.min(...values), high = Math.max(...values);
    const edge = (high - low) * 0.08 || Math.abs(high) * 0.1 || 0.1, [start, end] = [low - edge, high + edge];
    return { place: (value) => from + (value - start) / (end - start) * (to - from), ticks: findTicks(start, end) };
  };
  const x = scale("x", box.left, box.right), y = scale("y", box.bottom, box.top);
  const quiet = { fill: "currentColor", "font-size": 11, "font-family": "system-ui, sans-serif" };
  add("path", { d: "M" + box.left + " " + box.top + "V" + box.bottom + "H" + box.right, fill: "none", stroke: "currentColor" });
  const most = Math.max(1, Math.floor((box.right - box.left) / (formatX ? 80 : 40))), across = formatX ? x.ticks[0].filter(Number.isInteger) : x.ticks[0];
  for (const value of across.filter((_, k) => k % Math.ceil(across.length / most) === 0)) {
    add("path", { d: "M" + x.place(value) + " " + box.bottom + "v4", stroke: "currentColor", fill: "none" });
    add("text", { ...quiet, x: x.place(value), y: box.bottom + 16, "text-anchor": "middle" }, formatX ? formatX(value) : value.toFixed(x.ticks[1]));
  }
  for (const value of y.ticks[0]) {
    add("path", { d: "M" + box.left + " " + y.place(value) + "h-4", stroke: "currentColor", fill: "none" });
    add("text", { ...quiet, x: box.left - 7, y: y.place(value) + 4, "text-anchor": "end" }, value.toFixed(y.ticks[1]));
  }
  add("text", { ...quiet, "font-size": 12, x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, titles[0]);
  add("text", { ...quiet, "font-size": 12, x: 0, y: 0, transform: "translate(12 " + (box.top + box.bottom) / 2 + ") rotate(-90)", "text-anchor": "middle" }, titles[1]);
  const ordered = [...front].sort((a, b) => a.x - b.x || a.y - b.y);
  // in steps: what lies between two points of the front, no line reaches
  const steps = ordered.map((point, k) => {
    const across = "H" + x.place(point.x), up = "V" + y.place(point.y);
    return k ? (signs[0] > 0 ? up + across : across + up) : "M" + x.place(point.x) + " " + y.place(point.y);
  });
  add("path", { class: "front", d: steps.join(""), fill: "none", stroke: "currentColor", "stroke-dasharray": "4 3" });
  const radius = (point) => (lost(point.size) ? 4.5 : 3 + 9 * point.size);
  const taken = points.map((point) => { const r = radius(point) + 1.5; return [x.place(point.x) - r, y.place(point.y) - r, x.place(point.x) + r, y.place(point.y) + r]; });
  for (const point of [...ordered, ...points.filter((one) => !front.includes(one))]) {
    const on = front.includes(point), [cx, cy] = [x.place(point.x), y.place(point.y)];
    const circle = add("circle", { cx, cy, r: radius(point), stroke: "currentColor", "stroke-width": 1.5, ...(point.dashed && { "stroke-dasharray": "2 2" }), fill: on ? "currentColor" : "none" });
    const title = document.createElementNS(svg.namespaceURI, "title");
    title.textContent = point.name + ": " + (formatX ? formatX(point.x) : number(point.x)) + ", " + number(point.y) + (point.words ? ", " + point.words : "");
    circle.append(title);
    const short = point.name.length > 26 ? point.name.slice(0, 25) + "…" : point.name, long = short.length * 6.4;
    // a name stands above or below its point; one that would lie over a point or another name is left to the pointer
    const away = radius(point) - 4.5, places = [[5, -8 - away], [-5, -8 - away], [5, 17 + away], [-5, 17 + away]].map(([aside, down]) => {
      const left = aside > 0 ? cx + aside : cx + aside - long;
      return { x: cx + aside, y: cy + down, anchor: aside > 0 ? "start" : "end", box: [left, cy + down - 11, left + long, cy + down + 2] };
    });
    const free = places.find(({ box: [left, top, right, bottom] }) => left >= box.left && right <= box.right + 10 && bottom <= box.bottom
      && !taken.some((one) => one[0] < right && left < one[2] && one[1] < bottom && top < one[3]));
    if (!free) continue;
    taken.push(free.box);
    add("text", { ...quiet, x: free.x, y: free.y, "text-anchor": free.anchor, "font-weight": on ? 600 : 400 }, short);
  }
}
// index and data: of the group's texts, see documents.py; system: the line's place in them
function drawTexts(box, index, data, system) {
  box.replaceChildren(...data.rows.map((row, i) => {
    const item = make("details"), said = row.systems[system], facts = [visible(index.ids[i])];
    const gold = index.gold[i], predicted = index.predicted[system][i], label = index.labels[predicted];
    if (gold >= 0) facts.push("gold " + visible(index.labels[gold]));
    if (predicted >= 0) facts.push("predicted " + visible(label) + (gold < 0 ? "" : gold === predicted ? " ✓ right" : " ✗ wrong") + (said.p && !lost(said.p[label]) ? " (p = " + number(said.p[label]) + ")" : ""));
    const head = make("summary"), words = make("h3", "", facts.join(" · "));
    words.dir = "auto";
    head.append(words);
    item.append(head);
    item.open = i === 0;
    if (row.query) item.append(make("p", "facts", "query " + visible(row.query)));
    row.docs.forEach((d, place) => {
      const text = layOut(data.docs[d], row, place, [system], false), article = make("article", "document");
      article.append(heading(row, data.docs[d], text, place), ...columnOf(text, row, system, place));
      item.append(article);
    });
    if (said.quotes) item.append(quoteList(said.quotes, ""));
    return item;
  }));
}
// the costs of the points in their most frequent unit, as areas; returns a sentence, "" where fewer than two have one
function addSizes(points, rows) {
  const units = new Map();
  for (const row of rows) if (row.dataset.cost) units.set(row.dataset.unit, (units.get(row.dataset.unit) || 0) + 1);
  const [unit, count] = [...units].sort((a, b) => b[1] - a[1])[0] || ["", 0];
  if (count < 2) return "";
  const own = (row) => (row.dataset.cost && row.dataset.unit === unit ? Number(row.dataset.cost) : null);
  const most = Math.max(...rows.map((row) => own(row) || 0)) || 1;
  points.forEach((point, k) => {
    const cost = own(rows[k]);
    point.dashed = lost(cost);
    if (point.dashed) return;
    point.size = Math.sqrt(cost / most);
    point.words = "cost " + rows[k].dataset.cost.replace(/\.0$/, "") + " " + unit;
  });
  return count + " of " + points.length + " points have a cost" + (unit ? " in " + unit : "") + ", as their submissions say it: the larger the point, the higher. A dashed circle has none. The front does not count costs.";
}
// names: of the two lines; scores: [label, [first, second], [first is better, second is better]]
function drawPair(table, names, scores) {
  const head = make("tr"), body = make("tbody"), top = make("thead");
  for (const [place, text] of ["Score", ...names, "Difference"].entries()) {
    const cell = make("th", place ? "n" : "", text);
    cell.scope = "col";
    head.append(cell);
  }
  for (const [label, values, better] of scores) {
    const row = make("tr"), name = make("th", "", label);
    name.scope = "row";
    row.append(name, ...values.map((value, k) => make("td", better[k] ? "n better" : "n", (better[k] ? "★ " : "") + number(value))));
    const difference = values.some(lost) ? null : values[0] - values[1], text = number(difference);
    row.append(make("td", "n", difference > 0 && /[1-9]/.test(text) ? "+" + text : text));
    body.append(row);
  }
  top.append(head);
  table.replaceChildren(top, body);
}
