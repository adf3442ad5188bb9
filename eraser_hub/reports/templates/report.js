// Texts: which are shown and in what order, the one that is looked at, and its address (#text=ID&system=NAME&system=NAME).
const byId = (id) => document.getElementById(id);
const index = JSON.parse(byId("index").textContent);
const several = index.systems.length > 1;
const state = { list: [], at: 0, shown: index.shown.slice(), row: null };
const blocks = new Map();

// the same signs as the terminal's: control characters are shown, and what turns text round is a number
const visible = (text) => String(text).replace(/[\u0000-\u001f\u007f]/g, (c) => (c === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0))))
  .replace(/[\u0080-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu, (c) => "<U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + ">");
const make = (tag, name, ...inside) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...inside);
  return node;
};
const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
const swatches = document.querySelectorAll(several ? "#systems svg" : "#score-table tbody svg");
const swatch = (system) => (swatches[system] ? swatches[system].cloneNode(true) : "");

// -- data: a block of texts is unpacked when one of them is looked at ----------------------------------------------
async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}
let beside = null;
const arrived = new Map();
window.addBlock = (place, packed) => arrived.set(place, packed); // called by texts.js
function loadBeside() {
  beside = beside || new Promise((done, failed) => {
    const script = make("script");
    script.src = "texts.js";
    script.onload = done;
    script.onerror = () => failed(new Error("texts.js is not beside this page: it has the texts after the first " + index.block));
    document.head.append(script);
  });
  return beside;
}
async function read(text) {
  const place = Math.floor(text / index.block);
  if (place && !arrived.has(place)) await loadBeside();
  if (!blocks.has(place)) blocks.set(place, await unpack(place ? arrived.get(place) : byId("block").textContent));
  const block = blocks.get(place), row = block.rows[text % index.block];
  return { ...row, documents: row.docs.map((at) => block.docs[at]) };
}

// -- which texts, in what order --------------------------------------------------------------------------------------
const isRight = (text, system) => {
  const answer = (index.predicted[system] || [])[text];
  return answer === undefined || answer < 0 || index.gold[text] < 0 ? null : answer === index.gold[text];
};
function addOptions() {
  const add = (select, value, words) => { const option = make("option", "", visible(words)); option.value = value; select.append(option); };
  const filter = byId("filter"), order = byId("order"), answers = index.predicted.flat();
  add(filter, "", "all texts");
  if (answers.some((answer) => answer >= 0)) {
    add(filter, "right", "right label" + (several ? ", first system shown" : ""));
    add(filter, "wrong", "wrong label" + (several ? ", first system shown" : ""));
    if (several) add(filter, "differ", "systems give different labels");
  }
  index.labels.forEach((label, at) => { if (index.gold.includes(at)) add(filter, "gold:" + at, "gold " + label); });
  if (index.interest) add(order, "", index.interest);
  add(order, "file", "as in the file");
  for (const [key, label] of Object.entries(index.names)) {
    add(order, "up:" + key, label + ", lowest first");
    add(order, "down:" + key, label + ", highest first");
  }
}
function passes(text) {
  const chosen = byId("filter").value, search = byId("find").value.toLowerCase();
  if (search && !index.ids[text].toLowerCase().includes(search)) return false;
  if (chosen === "right" || chosen === "wrong") return isRight(text, state.shown[0]) === (chosen === "right");
  if (chosen === "differ") return new Set(index.predicted.map((answers) => answers[text]).filter((answer) => answer >= 0)).size > 1;
  return !chosen || index.gold[text] === Number(chosen.slice(5));
}
function list(keep) {
  const [way, key] = byId("order").value.split(":"), values = (index.values[state.shown[0]] || {})[key] || [];
  state.list = index.ids.map((_, text) => text).filter(passes);
  if (way === "file") state.list.sort((a, b) => index.position[a] - index.position[b]);
  if (key) {
    const rank = (text) => { const value = values[text]; return value === null || value === undefined ? Infinity : way === "up" ? value : -value; };
    state.list.sort((a, b) => (rank(a) === rank(b) ? a - b : rank(a) - rank(b)));
  }
  state.at = Math.max(0, state.list.indexOf(keep));
  return show();
}
const go = (step) => { state.at = Math.min(state.list.length - 1, Math.max(0, state.at + step)); show(); };

// -- one text -------------------------------------------------------------------------------------------------------
async function show() {
  const text = state.list[state.at], view = byId("text");
  byId("previous").disabled = state.at === 0;
  byId("next").disabled = state.at >= state.list.length - 1;
  byId("found").textContent = state.list.length ? state.at + 1 + " of " + state.list.length : "no text passes the filter";
  byId("name").textContent = text === undefined ? "" : visible(index.ids[text]);
  byId("facts").replaceChildren();
  byId("legend").replaceChildren();
  view.replaceChildren();
  if (text === undefined) return;
  let row;
  try { row = await read(text); } catch (error) { view.append(make("p", "why", error.message)); return; }
  if (state.list[state.at] !== text) return; // a later step overtook this one
  const fact = (name, value) => { const shown = make("b", "", visible(value)); shown.dir = "auto"; byId("facts").append(name + " ", shown, "  "); };
  if (row.query) fact("query", row.query);
  if (index.gold[text] >= 0) fact("gold label", index.labels[index.gold[text]]);
  if (row.empty) fact("empty evidence spans, not drawn", row.empty);
  const shown = index.systems.length ? state.shown : [-1];
  drawLegend(row, shown.map((system) => row.systems[system] || {}));
  const kept = row.documents.map((_, d) => keepLines(row, d, shown));
  view.append(make("div", "columns", ...shown.map((system) => drawColumn(row, text, system, kept))));
  const names = several ? state.shown.map((system) => "&system=" + encodeURIComponent(index.systems[system])) : [];
  if (state.moved) history.replaceState(null, "", "#text=" + encodeURIComponent(index.ids[text]) + names.join(""));
  document.documentElement.dataset.ready = "yes";
}
// the marks that this text has
function drawLegend(row, answers) {
  const add = (...inside) => byId("legend").append(make("span", "text", ...inside));
  const groups = [...new Set(row.gold.map((span) => span[3]))].sort((a, b) => a - b).slice(0, 5);
  groups.forEach((group, at) => {
    const words = [at ? "" : index.gold_words, groups.length > 1 ? "group " + (group + 1) : ""].filter(Boolean).join(", ");
    add(make("span", "m gold", String(group + 1)), make("span", "g g" + (group % 5), words));
  });
  if (answers.some((said) => (said.hard || []).length)) add(make("span", "m pred", "["), make("span", "h", "predicted"), make("span", "m pred", "]"));
  if (answers.some((said) => (said.soft || []).some(Boolean))) add(..."soft score,|from low|to|high".split("|").flatMap((words, at) => [make("span", "s" + (at + 1), words), " "]));
}
function drawColumn(row, text, system, kept) {
  const column = make("section", "column"), said = row.systems[system] || {};
  if (system >= 0) {
    const facts = make("p", "facts", swatch(system), make("b", "system", visible(index.systems[system]))), right = isRight(text, system);
    const answer = index.predicted[system][text];
    if (answer >= 0) {
      const label = index.labels[answer], p = (said.p || {})[label];
      facts.append(" says ", make("bdi", "", visible(label)), right === null ? "" : right ? " ✓" : " ✗", p === undefined ? "" : " p " + number(p));
    }
    const values = Object.entries(index.values[system]).filter(([, column]) => column[text] !== null).slice(0, 3);
    facts.append(make("small", "", " " + values.map(([key, column]) => index.names[key] + " " + number(column[text])).join(" · ")));
    column.append(facts);
  }
  row.documents.forEach((_, d) => column.append(drawDocument(row, said, d, kept[d])));
  if (said.quotes) {
    column.append(make("ol", "quotes", ...said.quotes.map(([words, status, place]) => {
      const quote = make("li", status, make("b", "", visible(status.replaceAll("_", " "))), " “" + visible(words) + "” ", make("small", "", visible(place)));
      quote.dir = "auto";
      return quote;
    })));
  }
  return column;
}
const spansOf = (spans, d) => (spans || []).filter((span) => span[0] === d).map((span) => span.slice(1));
// lines that a mark of a shown system touches, and their neighbours; of a text without marks the first three
function keepLines(row, d, shown) {
  const lines = row.documents[d].lines;
  if (byId("whole").checked) return lines.map(() => true);
  const spans = [...spansOf(row.gold, d), ...shown.flatMap((system) => spansOf((row.systems[system] || {}).hard, d))];
  let token = 0;
  const marked = lines.map((line) => {
    const start = token;
    token += line ? line.split(" ").length : 0;
    return spans.some((span) => span[0] < token && span[1] > start);
  });
  return marked.map((_, at) => (marked.includes(true) ? marked[at - 1] || marked[at] || marked[at + 1] : at < 3));
}
function drawDocument(row, said, d, kept) {
  const source = row.documents[d], text = make("div", "text"), gold = spansOf(row.gold, d), hard = spansOf(said.hard, d);
  const shades = (said.soft || [])[d];
  let token = 0, folded = 0;
  const fold = () => { if (folded) text.append(make("p", "fold", "… " + folded + (folded === 1 ? " line" : " lines") + " without a mark …")); folded = 0; };
  source.lines.forEach((line, at) => {
    const words = line ? line.split(" ") : [];
    if (!kept[at]) { token += words.length; folded += 1; return; }
    fold();
    const paragraph = make("p");
    paragraph.dir = "auto";
    let run = null;
    words.forEach((word) => {
      const groups = gold.filter((span) => span[0] <= token && token < span[1]).map((span) => span[2]), predicted = hard.some((span) => span[0] <= token && token < span[1]);
      const shade = shades ? Number(shades[token]) : 0;
      const css = [groups.length ? "g g" + (Math.min(...groups) % 5) : "", predicted ? "h" : "", shade > 0 ? "s" + shade : ""].filter(Boolean).join(" ");
      const before = gold.filter((span) => span[0] === token).map((span) => make("span", "m gold", String(span[2] + 1)));
      if (hard.some((span) => span[0] === token)) before.push(make("span", "m pred", "["));
      const ends = hard.some((span) => span[1] === token + 1), blank = paragraph.childNodes.length ? " " : "";
      if (run && run.className === css && css && !before.length) run.append(" " + visible(word)); // one element for a run of equal marks
      else {
        run = css ? make("span", css, visible(word)) : null;
        paragraph.append(blank, ...before, run || visible(word));
      }
      if (ends) { paragraph.append(make("span", "m pred", "]")); run = null; }
      token += 1;
    });
    text.append(paragraph);
  });
  fold();
  const heading = make("h4", "", visible(source.id) + " · " + token + " tokens");
  const article = make("article", "document", heading, text), tops = (said.tops || [])[d] || [];
  if (tops.length) article.append(make("p", "quiet", "top tokens: " + tops.map(visible).join(" · ")));
  text.lang = row.lang || "";
  return article;
}

// -- controls, keys, addresses --------------------------------------------------------------------------------------
function choose(systems) {
  state.shown = systems;
  for (const box of document.querySelectorAll("#systems input")) box.checked = systems.includes(Number(box.value));
}
function restore() {
  const wanted = new URLSearchParams(location.hash.slice(1)), text = index.ids.indexOf(wanted.get("text"));
  if (text < 0) return false;
  const systems = wanted.getAll("system").map((name) => index.systems.indexOf(name)).filter((at) => at >= 0);
  if (systems.length) choose(systems);
  byId("filter").value = byId("find").value = "";
  state.moved = true;
  list(text);
  byId("texts").scrollIntoView();
  return true;
}
addOptions();
choose(state.shown);
for (const box of document.querySelectorAll("#systems input")) {
  box.addEventListener("change", () => {
    const chosen = Number(box.value), rest = state.shown.filter((system) => system !== chosen);
    choose(box.checked ? [...rest, chosen] : rest.length ? rest : [chosen]);
    list(state.list[state.at]);
  });
}
for (const [id, event] of [["filter", "change"], ["order", "change"], ["find", "input"]]) byId(id).addEventListener(event, () => { state.moved = true; list(); });
byId("whole").addEventListener("change", () => show());
byId("previous").addEventListener("click", () => { state.moved = true; go(-1); });
byId("next").addEventListener("click", () => { state.moved = true; go(1); });
document.addEventListener("keydown", (event) => {
  const writes = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  if (event.ctrlKey || event.metaKey || event.altKey || writes) return;
  const keys = { j: () => byId("next").click(), k: () => byId("previous").click(), u: () => byId("whole").click(), "/": () => byId("find").focus() };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
addEventListener("hashchange", restore);
addEventListener("beforeprint", () => { for (const node of document.querySelectorAll("details")) node.open = true; });
const pairs = byId("pairs");
if (pairs) {
  const showPairs = () => {
    for (const row of byId("difference-table").tBodies[0].rows) row.hidden = Boolean(pairs.value) && !row.dataset.systems.split("\n").includes(pairs.value);
  };
  pairs.addEventListener("change", showPairs);
  if (pairs.options.length > 5) pairs.selectedIndex = 1;
  showPairs();
}
if (index.ids.length && !restore()) list(0);
