// The explorer's page. START, element and server come from app.py: what there is to choose, the page, Python's functions.
const find = (selector) => element.querySelector(selector);
const all = (selector) => [...element.querySelectorAll(selector)];
const state = {
  dataset: START.samples, config: "movies", split: "validation", id: "posR_090.txt", view: "marks",
  marks: new Set(), soft: null, people: [new Set(), new Set()], person: 0, quotes: "", system: "",
  pair: 0, ranked: START.pairs.map((pair) => pair.ranked.map((order) => [...order])),
};
const HELP = {
  marks: "Click or tap words, or drag over them. Keys: arrows move, Space marks, Shift+arrows marks on the way, 0 to 9 brush a score.",
  quotes: "Write a quote a line. What stands in the text is shown there; an invented quote stands nowhere.",
  annotators: "Mark the text twice, once as each annotator.",
};
const STRIP = { token_macro_f1: "Token F1", auprc: "AUPRC", comprehensiveness: "Compr.", sufficiency: "Suff." };
let text = null, current = 0, tool = "mark", asked = 0, spans = [], quoted = new Set();

// -- the server -----------------------------------------------------------------------------------------------------

let pending = 0;
async function ask(name, request) {
  element.setAttribute("aria-busy", ++pending > 0);
  try {
    const answer = await server[name](request);
    if (answer.error) throw new Error(answer.error);
    return answer;
  } finally {
    element.setAttribute("aria-busy", --pending > 0);
  }
}

function complain(error) {
  find("#error").textContent = error ? error.message : "";
  find("#error").hidden = !error;
}

async function attempt(work) {
  try {
    complain(null);
    await work();
  } catch (error) {
    complain(error);
  }
}

const place = () => ({ dataset: state.dataset, config: state.config, split: state.split, id: state.id });

// the newest answer wins; an older one that comes late is dropped
let asking = false, waiting = false;
async function rescore() {
  if (asking) {
    waiting = true;
    return;
  }
  asking = true;
  await attempt(SCORERS[state.view]);
  asking = false;
  if (waiting) {
    waiting = false;
    rescore();
  }
  remember();
}

const SCORERS = {
  async marks() {
    const scores = await ask("score", { ...place(), marks: [...state.marks], soft: state.soft });
    show("#agreement", scores.agreement);
    show("#faithfulness", scores.faithfulness);
    if (!text.model) show("#answers", "<p class=small>No small model answers for this corpus: its labels depend on the question, which a count of words cannot read. Choose the corpus movies to see the model's answers move.</p>");
    else show("#answers", scores.answers);
    show("#curves", scores.curves || (text.model ? "<p class=small>Brush scores, or load a system, to see AUPRC and the curves of AOPC.</p>" : ""));
    const parts = Object.entries(STRIP).filter(([key]) => scores.values[key] != null)
      .map(([key, name]) => [name, scores.values[key].toFixed(2)]);
    find("#strip").innerHTML = parts.map(([name, value]) => `<span>${name} <b>${value}</b></span>`).join("");
    find("#live").textContent = parts.map((part) => part.join(" ")).join(", ");
  },
  async quotes() {
    const scores = await ask("quotes", { ...place(), quotes: state.quotes.split("\n") });
    show("#quote-scores", scores.html);
    quoted = new Set(scores.quotes.flatMap(({ place: at }) => (at ? range(...at) : [])));
    const list = find("#statuses");
    list.replaceChildren(...scores.quotes.map((quote) => {
      const line = document.createElement("li"), status = document.createElement("b");
      line.className = quote.status;
      line.append(quote.text + " ");
      status.textContent = quote.status === "not_found" ? "invented" : quote.status.replace("_", " ");
      line.append(status);
      return line;
    }));
    find("#strip").textContent = "";
    paint();
  },
  async annotators() {
    const scores = await ask("annotators", { ...place(), marks: state.people.map((marks) => [...marks]) });
    show("#annotator-scores", scores.html);
    find("#strip").textContent = "";
  },
  async pair() {
    const scores = await ask("pair", { pair: state.pair, ranked: state.ranked[state.pair] });
    show("#pair-scores", scores.html);
    find("#strip").textContent = "";
  },
};

function show(selector, html) {
  const box = find(selector);
  const before = Object.fromEntries([...box.querySelectorAll("[data-key]")].map((item) => [item.dataset.key, item.dataset.value]));
  box.innerHTML = html;
  for (const item of box.querySelectorAll("[data-key]"))
    if (item.dataset.key in before && before[item.dataset.key] !== item.dataset.value) item.classList.add("moved");
  element.dataset.scored = ++asked;
}

// -- the text -------------------------------------------------------------------------------------------------------

const range = (start, end) => Array.from({ length: end - start }, (_, at) => start + at);

function drawText() {
  const parts = [];
  spans = [];
  for (const { docid, text: body } of text.documents) {
    const box = document.createElement("div");
    if (text.documents.length > 1) {
      const name = document.createElement("h3");
      name.textContent = docid;
      parts.push(name);
    }
    box.className = "text";
    box.tabIndex = 0;
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-multiselectable", "true");
    box.setAttribute("aria-label", `words of ${docid}`);
    for (const line of body.split("\n")) {
      const sentence = document.createElement("div");
      sentence.className = "sentence";
      sentence.setAttribute("role", "group");
      sentence.setAttribute("aria-label", "sentence");
      for (const word of line.split(" ").filter(Boolean)) {
        const token = document.createElement("span");
        token.textContent = word;
        token.id = `token-${spans.length}`;
        token.dataset.at = spans.length;
        token.setAttribute("role", "option");
        spans.push(token);
        sentence.append(token, " ");
      }
      if (sentence.childElementCount) box.append(sentence);
    }
    parts.push(box);
  }
  find("#text").replaceChildren(...parts);
  current = 0;
  paint();
}

function paint() {
  const gold = new Set(text.gold), [first, second] = state.people;
  const people = state.view === "annotators", quotes = state.view === "quotes";
  const chosen = people ? state.people[state.person] : state.marks;
  spans.forEach((token, at) => {
    const marked = quotes ? false : people ? first.has(at) : state.marks.has(at);
    token.className = [
      marked && "marked", people && second.has(at) && "second", quotes && quoted.has(at) && "quoted",
      !people && gold.has(at) && "gold", at === current && "current",
    ].filter(Boolean).join(" ");
    token.setAttribute("aria-selected", String(quotes ? quoted.has(at) : chosen.has(at)));
    const score = state.view === "marks" && state.soft ? state.soft[at] : 0;
    token.style.boxShadow = score ? `inset 0 -${(6 * score).toFixed(1)}px 0 #d9480f` : "";
    token.title = score ? `score ${score}` : "";
  });
  for (const box of all(".text"))
    if (box.contains(spans[current])) box.setAttribute("aria-activedescendant", `token-${current}`);
    else box.removeAttribute("aria-activedescendant");
}

function legend() {
  const names = {
    marks: [["marked gold", "marked, and gold"], ["marked", "marked"], ["gold", "gold evidence"]],
    quotes: [["quoted", "quoted"], ["gold", "gold evidence"]],
    annotators: [["marked", "annotator A"], ["second", "annotator B"], ["marked second", "both"]],
  }[state.view] ?? [];
  find("#legend").innerHTML = names.map(([kind, name]) => `<span class="${kind}">${name}</span>`).join("");
  find("#help").textContent = HELP[state.view] ?? "";
}

function mark(at, on) {
  if (state.view === "quotes") return;
  current = at;
  if (state.view === "marks" && tool === "brush") return brush(at, on ? Number(find("#strength").value) : 0);
  const marks = state.view === "annotators" ? state.people[state.person] : state.marks;
  marks[on ? "add" : "delete"](at);
  chooseSystem("");
  paint();
}

function brush(at, score) {
  current = at;
  state.soft ??= spans.map(() => 0);
  state.soft[at] = score;
  if (!state.soft.some(Boolean)) state.soft = null;
  chooseSystem("");
  paint();
}

function isOn(at) {
  if (state.view === "annotators") return state.people[state.person].has(at);
  return tool === "brush" ? Boolean(state.soft?.[at]) : state.marks.has(at);
}

// a mouse paints from its first word on; a finger may be about to scroll, so it paints when it moves or lifts
let drag = null;
const tokenAt = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest(".text span");
find("#text").addEventListener("pointerdown", (event) => {
  const token = event.target.closest("span");
  if (!token || event.button) return;
  const at = Number(token.dataset.at);
  drag = { on: !isOn(at), last: at, started: event.pointerType !== "touch" };
  token.closest(".text").focus({ preventScroll: true });
  if (drag.started) mark(at, drag.on);
  event.preventDefault();
});
find("#text").addEventListener("pointermove", (event) => {
  const token = drag && tokenAt(event);
  if (!token || Number(token.dataset.at) === drag.last) return;
  const at = Number(token.dataset.at);
  const [low, high] = [Math.min(at, drag.last), Math.max(at, drag.last)];
  drag.started = true;
  for (let place = low; place <= high; place++) mark(place, drag.on);
  drag.last = at;
});
find("#text").addEventListener("pointercancel", () => { drag = null; });
document.addEventListener("pointerup", () => {
  if (!drag) return;
  if (!drag.started) mark(drag.last, drag.on);
  drag = null;
  rescore();
});

find("#text").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const sentence = spans[current]?.parentElement;
  let at = current;
  if (step) at = current + step;
  else if (event.key === "Home") at = Number(sentence.firstElementChild.dataset.at);
  else if (event.key === "End") at = Number(sentence.lastElementChild.dataset.at);
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const lines = all(".sentence"), next = lines[lines.indexOf(sentence) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) at = Number(next.firstElementChild.dataset.at);
  } else if (event.key === " " || event.key === "Enter") {
    mark(current, !isOn(current));
    rescore();
  } else if (/^[0-9]$/.test(event.key) && state.view === "marks" && !event.ctrlKey && !event.metaKey) {
    brush(current, Number(event.key) / 10);
    rescore();
  } else return;
  event.preventDefault();
  at = Math.min(Math.max(at, 0), spans.length - 1);
  if (at !== current) {
    if (event.shiftKey && step) {
      mark(current, true);
      mark(at, true);
      rescore();
    }
    current = at;
    paint();
    const box = spans[at].closest(".text");
    if (document.activeElement !== box) box.focus();
    spans[at].scrollIntoView({ block: "nearest" });
  }
});

// -- choices --------------------------------------------------------------------------------------------------------

function fillSelect(selector, names, chosen, labels = names) {
  find(selector).replaceChildren(...names.map((name, at) => new Option(labels[at], name, false, name === chosen)));
}

function fillChoices() {
  const bundled = state.dataset === START.samples;
  const configs = Object.keys(START.corpora);
  if (!configs.includes(state.config)) state.config = configs[0];
  const splits = bundled ? START.corpora[state.config] : ["validation", "test", "train"];
  if (!splits.includes(state.split)) state.split = splits[0];
  find("#dataset").value = state.dataset;
  fillSelect("#config", configs, state.config, configs.map((name) => name.replace("_", " ")));
  fillSelect("#split", splits, state.split);
}

async function openSplit() {
  const { ids, total } = await ask("list_split", place());
  if (!ids.includes(state.id)) state.id = ids[0];
  const labels = ids.length < total ? ids.map((id, at) => (at === ids.length - 1 ? `${id} (first ${ids.length} of ${total})` : id)) : ids;
  fillSelect("#instance", ids, state.id, labels);
}

// a copy: marking and brushing change it
function load(system) {
  state.marks = new Set(system?.marks ?? []);
  state.soft = system?.soft ? [...system.soft] : null;
}

async function openText(kept = {}) {
  text = await ask("open_instance", place());
  find("#query").textContent = text.query;
  find("#label").textContent = text.label ?? "none";
  const systems = Object.keys(text.systems);
  fillSelect("#system", ["", "gold", ...systems], "", ["your marks", "the gold evidence", ...systems]);
  const first = text.systems[kept.system ?? systems[0]], size = listWords().length;
  for (const key of ["marks", "a", "b"]) kept[key] &&= kept[key].filter((at) => at < size);  // a link may be of another text
  load(kept.marks ? { marks: kept.marks } : first);
  if (kept.soft) state.soft = scatter(kept.soft);
  state.people = [new Set(kept.a ?? text.gold), new Set(kept.b ?? first?.marks ?? text.gold.slice(1))];
  chooseSystem(kept.marks ? "" : kept.system ?? systems[0] ?? "");
  state.quotes = kept.quotes ?? suggestQuotes();
  find("#quotes").value = state.quotes;
  drawText();
  await rescore();
}

const listWords = () => text.documents.flatMap(({ text: body }) => body.split(/[ \n]+/).filter(Boolean));
const scatter = (pairs) => {
  const soft = listWords().map(() => 0);
  for (const [at, score] of pairs) if (at in soft && score >= 0 && score <= 1) soft[at] = score;
  return soft;
};

function suggestQuotes() {
  const words = listWords();
  const start = text.gold[0] ?? 0;
  const quote = words.slice(start, start + 5).join(" ");
  return [quote, words.slice(0, 4).join(" ").toUpperCase(), "words that nobody wrote here"].join("\n");
}

function chooseSystem(name) {
  state.system = name;
  find("#system").value = name;
}

function openView(view) {
  state.view = view;
  for (const tab of all("[role=tab]")) {
    const chosen = tab.dataset.view === view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  find("#pane-text").hidden = view === "pair";
  find("#pane-pair").hidden = view !== "pair";
  find("#pane-text").setAttribute("aria-labelledby", `tab-${view === "pair" ? "marks" : view}`);
  for (const part of all("[data-for]")) part.hidden = part.dataset.for !== view;
  find("#statuses").hidden = view !== "quotes";
  legend();
  if (text) paint();
  if (view === "pair") drawPair();
}

function drawPair() {
  const names = START.pairs.map((pair, at) => `${at + 1}: ${pair.tokens[0].join(" ")}`);
  fillSelect("#pair", START.pairs.map((_, at) => String(at)), String(state.pair), names);
  [0, 1].forEach((side) => {
    const order = state.ranked[state.pair][side];
    find(`#pair-${side}`).replaceChildren(...START.pairs[state.pair].tokens[side].map((word, at) => {
      const button = document.createElement("button"), rank = order.indexOf(at) + 1;
      button.type = "button";
      button.dataset.word = at;
      button.dataset.side = side;
      button.textContent = word;
      button.className = rank ? "ranked" : "";
      if (rank) button.insertAdjacentHTML("beforeend", `<sup><span class="visually-hidden">, rank </span>${rank}</sup>`);
      return button;
    }));
  });
}

// -- links ----------------------------------------------------------------------------------------------------------

const encode = (marks) => {
  const runs = [];
  for (const at of [...marks].sort((a, b) => a - b))
    if (runs.length && runs.at(-1)[1] === at - 1) runs.at(-1)[1] = at;
    else runs.push([at, at]);
  return runs.map(([start, end]) => (start === end ? start : `${start}-${end}`)).join(".");
};
const decode = (words) => words.split(".").filter(Boolean).flatMap((run) => {
  const [start, end = start] = run.split("-").map(Number);
  return Number.isInteger(start) && end >= start && end - start < 20000 ? range(start, end + 1) : [];
});

function remember() {
  const parts = new URLSearchParams({ dataset: state.dataset, config: state.config, split: state.split, id: state.id, view: state.view });
  if (state.system) parts.set("system", state.system);
  else {
    parts.set("marks", encode(state.marks));
    const brushed = (state.soft ?? []).flatMap((score, at) => (score ? [`${at}_${score}`] : []));
    if (brushed.length && brushed.length <= 300) parts.set("soft", brushed.join("~"));
  }
  if (state.view === "annotators") state.people.forEach((marks, at) => parts.set("ab"[at], encode(marks)));
  if (state.view === "quotes") parts.set("quotes", state.quotes);
  if (state.view === "pair") {
    parts.set("pair", state.pair);
    parts.set("ranked", state.ranked[state.pair].map((order) => order.join(".")).join("~"));
  }
  history.replaceState(null, "", `#${parts}`);
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1)), kept = {};
  for (const key of ["dataset", "config", "split", "id"]) if (parts.get(key)) state[key] = parts.get(key);
  if (parts.has("marks")) kept.marks = decode(parts.get("marks"));
  if (parts.get("system")) kept.system = parts.get("system");
  if (parts.get("soft")) kept.soft = parts.get("soft").split("~").map((pair) => pair.split("_").map(Number));
  for (const person of "ab") if (parts.has(person)) kept[person] = decode(parts.get(person));
  if (parts.has("quotes")) kept.quotes = parts.get("quotes");
  const pair = Number(parts.get("pair"));
  if (START.pairs[pair]) state.pair = pair;
  if (parts.has("ranked") && START.pairs[state.pair])
    state.ranked[state.pair] = parts.get("ranked").split("~").slice(0, 2).map((order, side) =>
      order.split(".").filter(Boolean).map(Number).filter((at) => at in START.pairs[state.pair].tokens[side]));
  openView(parts.get("view") in SCORERS ? parts.get("view") : "marks");
  return [kept, parts.has("tour")];
}

// -- the tour -------------------------------------------------------------------------------------------------------

const STEPS = [
  { view: "marks", lit: "#text", title: "A text and its gold evidence",
    text: "Underlined words are what people marked as the reason for the label. An explanation (a rationale) is another set of words: yours, or a system's." },
  { view: "marks", lit: "#agreement", title: "Mark words, and watch Token F1",
    text: "The marks are now a few words of the gold evidence. Click more of them: recall and Token F1 rise. Click others: precision falls.",
    run() { state.marks = new Set(text.gold.slice(0, 3)); state.soft = null; } },
  { view: "marks", lit: "#answers", title: "Does the model need them?",
    text: "The model reads the text without your marks. The more its probability falls, the more comprehensive the explanation: 0.90 − 0.30 = 0.60.",
    run() { state.marks = new Set(text.gold); state.soft = null; } },
  { view: "marks", lit: "#faithfulness", title: "Are they enough?",
    text: "All words are marked now. Sufficiency is a perfect 0, and comprehensiveness is high: both favour long explanations, and agreement with people does not.",
    run() { state.marks = new Set(spans.map((_, at) => at)); state.soft = null; } },
  { view: "marks", lit: "#curves", title: "Scores in place of marks",
    text: "A system gives each word a score. AUPRC compares the order with the gold evidence. The curves erase the best words first, and AOPC is their mean.",
    run() {
      const name = Object.keys(text.systems)[0], system = text.systems[name];
      if (system) { state.marks = new Set(system.marks); state.soft = system.soft; }
    } },
  { view: "quotes", lit: "#statuses", title: "Quotes, people, changed texts",
    text: "A language model explains by quotes, and may invent one. The other views compare two annotators, and the ranking of a text with that of its changed wording. Copy link keeps what you see." },
];
let step = -1;

async function showStep(number) {
  step = number;
  for (const lit of all(".lit")) lit.classList.remove("lit");
  const open = step >= 0 && step < STEPS.length;
  find("#tour").hidden = !open;
  if (!open) return;
  const { view, lit, title, text: words, run } = STEPS[step];
  if (state.view !== view) openView(view);
  if (run) {
    run();
    chooseSystem("");
    paint();
  }
  find("#tour-step").textContent = `Step ${step + 1} of ${STEPS.length}`;
  find("#tour-title").textContent = title;
  find("#tour-text").textContent = words;
  find("#tour [data-do=back]").disabled = step === 0;
  find("#tour [data-do=next]").textContent = step === STEPS.length - 1 ? "Done" : "Next";
  find("#tour [data-do=next]").focus({ preventScroll: true });
  await rescore();
  find(lit).classList.add("lit");
  find(lit).scrollIntoView({ block: "center" });
}

// -- events ---------------------------------------------------------------------------------------------------------

const ACTIONS = {
  tour: () => showStep(0), next: () => showStep(step + 1), back: () => showStep(step - 1), end: () => showStep(-1),
  clear() { state.marks = new Set(); state.soft = null; chooseSystem(""); paint(); rescore(); },
  swap() { state.people[1] = new Set(state.people[0]); paint(); rescore(); },
  unrank() { state.ranked[state.pair] = [[], []]; drawPair(); rescore(); },
  async link(button) {
    remember();
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "See the address bar";
    }
    setTimeout(() => { button.textContent = "Copy link"; }, 1500);
  },
};

element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { do: action, view, tool: chosen, person, word } = button.dataset;
  if (action) ACTIONS[action](button);
  if (view) { openView(view); rescore(); }
  if (chosen) {
    tool = chosen;
    for (const one of all("[data-tool]")) one.setAttribute("aria-pressed", String(one === button));
    find(".strength").hidden = tool !== "brush";
  }
  if (person) {
    state.person = Number(person);
    for (const one of all("[data-person]")) one.setAttribute("aria-pressed", String(one === button));
    paint();
  }
  if (word) {
    const order = state.ranked[state.pair][button.dataset.side], at = Number(word);
    if (order.includes(at)) order.splice(order.indexOf(at), 1);
    else order.push(at);
    const { side } = button.dataset;
    drawPair();
    find(`#pair-${side} [data-word="${at}"]`).focus();
    rescore();
  }
});

find("[role=tablist]").addEventListener("keydown", (event) => {
  const tabs = all("[role=tab]"), move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!move) return;
  const next = tabs[(tabs.indexOf(document.activeElement) + move + tabs.length) % tabs.length];
  next.focus();
  next.click();
});
element.addEventListener("keydown", (event) => { if (event.key === "Escape" && step >= 0) showStep(-1); });

find("#dataset").addEventListener("change", ({ target }) => attempt(async () => {
  state.dataset = target.value.trim() || START.samples;
  state.id = "";
  fillChoices();
  await openSplit();
  await openText();
}));
for (const key of ["config", "split"])
  find(`#${key}`).addEventListener("change", ({ target }) => attempt(async () => {
    state[key] = target.value;
    state.id = "";
    fillChoices();
    await openSplit();
    await openText();
  }));
find("#instance").addEventListener("change", ({ target }) => attempt(async () => {
  state.id = target.value;
  await openText();
}));
find("#system").addEventListener("change", ({ target }) => {
  const system = target.value === "gold" ? { marks: text.gold, soft: null } : text.systems[target.value];
  if (system) load(system);
  state.system = target.value === "gold" ? "" : target.value;
  paint();
  rescore();
});
find("#strength").addEventListener("input", ({ target }) => { find("#strength-value").textContent = target.value; });
find("#show-gold").addEventListener("change", ({ target }) => find("#text").classList.toggle("without-gold", !target.checked));
let typing = 0;
find("#quotes").addEventListener("input", ({ target }) => {
  state.quotes = target.value;
  clearTimeout(typing);
  typing = setTimeout(rescore, 200);
});
find("#pair").addEventListener("change", ({ target }) => { state.pair = Number(target.value); drawPair(); rescore(); });
find(".choice").addEventListener("submit", (event) => event.preventDefault());

attempt(async () => {
  const [kept, toured] = recall();
  fillChoices();
  await openSplit();
  await openText(kept);
  if (toured) showStep(0);
});
