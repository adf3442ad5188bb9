"use strict";
// The documents' browser. Every text reaches the page through textContent; nothing is ever parsed as markup.
(function () {
  const byId = (id) => document.getElementById(id);
  const holder = byId("index");
  if (!holder) return;
  const index = JSON.parse(holder.textContent);
  const count = index.ids.length;
  const ROW = 28; // pixels, as in the style sheet
  const state = { system: 0, order: [], at: 0, unfolded: false, drawn: -1 };
  const chunks = new Map();
  const list = byId("list"), rows = list.querySelector("ol"), view = byId("documents");

  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  const visible = (text) => text.replace(STEERING, (c) => {
    const code = c.codePointAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : "<U+" + code.toString(16).toUpperCase().padStart(4, "0") + ">";
  });
  const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(3).replace(/^-(0\.0+)$/, "$1"));

  // ---- data: chunks of instances, compressed, unpacked when one of theirs is looked at
  async function chunk(number) {
    if (!chunks.has(number)) {
      const packed = atob(byId("chunk-" + number).textContent.trim());
      const bytes = new Uint8Array(packed.length);
      for (let i = 0; i < packed.length; i += 1) bytes[i] = packed.charCodeAt(i);
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      if (chunks.size > 20) chunks.delete(chunks.keys().next().value);
      chunks.set(number, new Response(stream).json());
    }
    return chunks.get(number);
  }
  function locate(instance) {
    let low = 0, high = index.chunks.length - 1; // the last chunk that starts at or before the instance
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (index.chunks[middle] <= instance) low = middle; else high = middle - 1;
    }
    return [low, instance - index.chunks[low]];
  }

  // ---- the list
  const scores = () => index.values[state.system] || {};
  const shownScore = () => byId("score").value;
  const right = (i) => {
    const predicted = index.predicted[state.system];
    if (!predicted || predicted[i] < 0 || index.gold[i] < 0) return null;
    return predicted[i] === index.gold[i];
  };
  function filter(keep) {
    const text = byId("find").value.toLowerCase(), label = byId("label").value, verdict = byId("verdict").value;
    const values = scores()[shownScore()];
    const low = byId("low").value === "" ? null : Number(byId("low").value);
    const high = byId("high").value === "" ? null : Number(byId("high").value);
    const order = [];
    for (let i = 0; i < count; i += 1) {
      if (text && !index.ids[i].toLowerCase().includes(text)) continue;
      if (label !== "" && index.gold[i] !== Number(label)) continue;
      if (verdict && right(i) !== (verdict === "right")) continue;
      if (low !== null || high !== null) {
        const value = values ? values[i] : null;
        if (value === null || value === undefined || (low !== null && value < low) || (high !== null && value > high)) continue;
      }
      order.push(i);
    }
    const direction = byId("order").value;
    if (direction && values) {
      const sign = direction === "up" ? 1 : -1;
      const lost = (v) => v === null || v === undefined;
      order.sort((a, b) => (lost(values[a]) - lost(values[b])) || (lost(values[a]) ? 0 : sign * (values[a] - values[b])) || a - b);
    }
    const was = keep === undefined ? state.order[state.at] : keep;
    state.order = order;
    state.at = Math.max(0, order.indexOf(was));
    rows.style.height = order.length * ROW + "px";
    byId("found").textContent = order.length + " of " + count;
    reveal();
    show();
  }
  function paint() {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 5);
    const last = Math.min(state.order.length, first + Math.ceil((list.clientHeight || 600) / ROW) + 10);
    const values = scores()[shownScore()];
    const nodes = [];
    for (let place = first; place < last; place += 1) {
      const i = state.order[place], verdict = right(i);
      const node = make("li");
      node.style.top = place * ROW + "px";
      node.dataset.place = place;
      node.id = "row-" + place;
      node.setAttribute("role", "option");
      node.setAttribute("aria-selected", String(place === state.at));
      const sign = make("span", "sign", verdict === null ? "·" : verdict ? "✓" : "✗");
      sign.title = verdict === null ? "not known" : verdict ? "right" : "wrong";
      node.append(sign, make("span", "name", visible(index.ids[i])));
      if (values) node.append(make("span", "value", number(values[i])));
      nodes.push(node);
    }
    rows.replaceChildren(...nodes);
    list.setAttribute("aria-activedescendant", "row-" + state.at);
  }
  function reveal() {
    const top = state.at * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    paint();
  }
  function go(place) {
    if (!state.order.length) return;
    state.at = Math.min(state.order.length - 1, Math.max(0, place));
    reveal();
    show();
  }

  // ---- one instance
  async function show() {
    const i = state.order[state.at];
    if (i === undefined) {
      byId("name").textContent = "nothing matches the filter";
      byId("facts").replaceChildren();
      view.replaceChildren();
      state.drawn = -1;
      return;
    }
    const [block, offset] = locate(i);
    const data = await chunk(block);
    if (state.order[state.at] !== i) return; // a later step overtook this one
    draw(data, data.rows[offset], i);
  }
  function draw(data, row, i) {
    byId("name").textContent = visible(index.ids[i]);
    const facts = byId("facts"), said = row.systems[state.system];
    facts.replaceChildren();
    const fact = (name, value) => {
      const span = make("span", "", name + " ");
      const shown = make("b", "", visible(value));
      shown.dir = "auto";
      span.append(shown);
      facts.append(span, document.createTextNode("   "));
    };
    if (row.query) fact("query", row.query);
    if (index.gold[i] >= 0) fact("gold", index.labels[index.gold[i]]);
    const verdict = right(i), place = index.systems.length ? index.predicted[state.system][i] : -1;
    if (place >= 0) {
      const label = index.labels[place], p = said && said.p ? said.p[label] : undefined;
      const sign = verdict === null ? "" : verdict ? " ✓ right" : " ✗ wrong";
      fact("predicted", label + (p === undefined ? "" : " (p = " + number(p) + ")") + sign);
    }
    const values = scores(), chosen = shownScore(), all = byId("all-scores").querySelector("dl");
    if (values[chosen]) fact(index.names[chosen] || chosen, number(values[chosen][i]));
    all.replaceChildren();
    for (const key of Object.keys(values)) {
      const pair = make("div");
      pair.append(make("dt", "", index.names[key] || key), make("dd", "", number(values[key][i])));
      all.append(pair);
    }
    byId("all-scores").hidden = !all.children.length;
    if (row.empty) fact("empty evidence spans, not drawn:", String(row.empty));
    byId("view").classList.toggle("haspair", Boolean(row.pair));
    view.className = "documents" + (row.pair ? " pair" : "");
    view.replaceChildren(...row.docs.map((d, place) => drawDocument(data, row, said, d, place)));
    if (said && said.quotes) view.append(quoteList(said.quotes));
    state.drawn = i;
    byId("place").textContent = (state.at + 1) + " / " + state.order.length;
    try { history.replaceState(null, "", "#doc=" + encodeURIComponent(index.ids[i])); } catch { /* a page without a history */ }
  }
  function quoteList(quotes) {
    const node = make("section", "quotes"), list = make("ol");
    for (const [text, status, place] of quotes) {
      const li = make("li", status);
      const quote = make("q", "", visible(text));
      quote.dir = "auto";
      li.append(make("b", "", status.replace("_", " ")), " ", quote, make("span", "quiet", place ? " " + visible(place) : ""));
      list.append(li);
    }
    node.append(make("h4", "", "quotes, as the model gave them, most important first"), list);
    return node;
  }
  function drawDocument(data, row, said, d, place) {
    const doc = data.docs[d], node = make("article", "document");
    const lines = doc.text.split("\n").map((line) => line.split(" ").filter((token) => token));
    const total = lines.reduce((sum, line) => sum + line.length, 0);
    node.append(make("h4", "", (row.titles ? row.titles[place] + " · " : "") + visible(doc.id) + " · " + total + " tokens"));
    const groups = Array.from({ length: total }, () => null), starts = new Map(), inside = new Int32Array(total).fill(-1);
    for (const [where, start, end, group] of row.gold) {
      if (where !== place) continue;
      for (let t = start; t < end; t += 1) {
        groups[t] = groups[t] || [];
        if (!groups[t].includes(group)) groups[t].push(group);
      }
      if (!starts.has(start)) starts.set(start, new Set());
      starts.get(start).add(group);
    }
    const opens = new Set(), closes = new Set();
    if (said && said.hard) {
      said.hard.forEach(([where, start, end], span) => {
        if (where !== place) return;
        for (let t = start; t < end; t += 1) inside[t] = span;
        opens.add(start);
        closes.add(end - 1);
      });
    }
    const soft = said && said.soft ? said.soft[place] : null;
    const ranks = said && said.ranks ? said.ranks[place] : null;
    const shade = (t) => (soft ? Math.min(4, Math.floor(Number(soft.substr(2 * t, 2)) / 20)) : 0);
    const marks = { groups, starts, inside, opens, closes, shade, soft, ranks };
    const text = make("div", "text");
    text.lang = doc.lang || "";
    // segments: a sentence, or forty tokens of a very long one
    const segments = [];
    let token = 0;
    for (const line of lines) {
      const step = line.length > 90 ? 40 : line.length;
      for (let from = 0; from < line.length; from += step) {
        const tokens = line.slice(from, from + step);
        segments.push({ from: token, tokens });
        token += tokens.length;
      }
    }
    const marked = segments.map((s) => s.tokens.some((_, k) => groups[s.from + k] || inside[s.from + k] >= 0));
    const any = marked.some(Boolean);
    const keep = segments.map((_, k) => state.unfolded || (any ? marked[k - 1] || marked[k] || marked[k + 1] : k < 6));
    for (let k = 0; k < segments.length; k += 1) {
      if (keep[k]) { text.append(paragraph(segments[k], marks)); continue; }
      let end = k;
      while (end < segments.length && !keep[end]) end += 1;
      const hidden = segments.slice(k, end), tokens = hidden.reduce((sum, s) => sum + s.tokens.length, 0);
      if (tokens <= 15) hidden.forEach((s) => text.append(paragraph(s, marks)));
      else {
        const button = make("button", "fold", "… " + hidden.length + (hidden.length === 1 ? " line" : " lines") + ", " + tokens + " tokens without a mark …");
        button.type = "button";
        button.addEventListener("click", () => button.replaceWith(...hidden.map((s) => paragraph(s, marks))));
        text.append(button);
      }
      k = end - 1;
    }
    node.append(text);
    if (said && said.top && said.top[place]) {
      const shared = new Set(said.shared || []), top = make("div", "top"), ol = make("ol");
      said.top[place].forEach((word, k) => {
        const li = make("li", "", (k + 1) + " ");
        const top = make("span", shared.has(word) ? "both" : "", visible(word));
        top.dir = "auto";
        li.append(top);
        ol.append(li);
      });
      top.append(make("span", "quiet", "top tokens, most important first (underlined: on both sides)"), ol);
      node.append(top);
    }
    return node;
  }
  function paragraph(segment, marks) {
    const p = make("p");
    p.dir = "auto"; // of each sentence by its own script
    let run = null, runClass = "", runTitle = "";
    const put = (text, className, title) => {
      if (run && className === runClass && title === runTitle) { run.textContent += text; return; }
      run = className ? make("span", className, text) : document.createTextNode(text);
      if (title) run.title = title;
      runClass = className; runTitle = title;
      p.append(run);
    };
    const sign = (className, text) => { p.append(make("span", "m " + className, text)); run = null; runClass = ""; runTitle = ""; };
    segment.tokens.forEach((word, k) => {
      const t = segment.from + k, here = marks.groups[t];
      if (k) { // the blank belongs to a mark when both its neighbours do
        const before = marks.groups[t - 1], both = here && before ? here.filter((g) => before.includes(g)) : [];
        const hard = marks.inside[t] >= 0 && marks.inside[t] === marks.inside[t - 1];
        put(" ", (both.length ? "g g" + (both[0] % 5) : "") + (hard ? " h" : ""), "");
      }
      if (marks.starts.has(t)) for (const group of marks.starts.get(t)) sign("gold", String(group + 1));
      if (marks.opens.has(t) && !marks.ranks) sign("pred", "[");
      const level = marks.shade(t);
      const classes = [here ? "g g" + (here[0] % 5) : "", marks.inside[t] >= 0 ? "h" : "", level ? "s" + level : ""].filter(Boolean).join(" ");
      const title = level ? "soft score: " + Number(marks.soft.substr(2 * t, 2)) + " of 99 between the document's lowest and highest" : "";
      put(visible(word), classes, title);
      if (marks.ranks && marks.ranks[t]) sign("rank", String(marks.ranks[t]));
      if (marks.closes.has(t) && !marks.ranks) sign("pred", "]");
    });
    return p;
  }

  // ---- controls
  function option(select, value, text) {
    const node = make("option", "", text);
    node.value = value;
    select.append(node);
  }
  function fillScores() {
    const select = byId("score"), was = select.value;
    select.replaceChildren();
    for (const key of Object.keys(scores())) option(select, key, index.names[key] || key);
    if ([...select.options].some((o) => o.value === was)) select.value = was;
    const none = !select.options.length;
    for (const id of ["score", "low", "high", "order"]) byId(id).disabled = none;
  }
  index.systems.forEach((name, k) => option(byId("system"), String(k), visible(name)));
  index.labels.forEach((name, k) => { if (index.gold.includes(k)) option(byId("label"), String(k), visible(name)); });
  if (!index.systems.length) for (const node of document.querySelectorAll(".says")) node.hidden = true; // nothing was predicted
  fillScores();
  byId("system").addEventListener("change", (e) => { state.system = Number(e.target.value); fillScores(); filter(); });
  for (const id of ["label", "verdict", "score", "order"]) byId(id).addEventListener("change", () => filter());
  for (const id of ["find", "low", "high"]) byId(id).addEventListener("input", () => filter());
  const toggles = { gold: "nogold", pred: "nopred", soft: "nosoft" };
  for (const id of Object.keys(toggles)) byId("show-" + id).addEventListener("change", (e) => byId("view").classList.toggle(toggles[id], !e.target.checked));
  byId("unfold").addEventListener("change", (e) => { state.unfolded = e.target.checked; show(); });
  byId("next").addEventListener("click", () => go(state.at + 1));
  byId("previous").addEventListener("click", () => go(state.at - 1));
  list.addEventListener("scroll", paint, { passive: true });
  rows.addEventListener("click", (e) => { const li = e.target.closest("li"); if (li) go(Number(li.dataset.place)); });
  const flip = (id) => { const box = byId(id); box.checked = !box.checked; box.dispatchEvent(new Event("change")); };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "checkbox";
    if (typing) { if (e.key === "Escape") e.target.blur(); return; }
    const keys = {
      j: () => go(state.at + 1), ArrowRight: () => go(state.at + 1), k: () => go(state.at - 1), ArrowLeft: () => go(state.at - 1),
      Home: () => go(0), End: () => go(state.order.length - 1),
      u: () => flip("unfold"), g: () => flip("show-gold"), p: () => flip("show-pred"), s: () => flip("show-soft"),
      "/": () => byId("find").focus(),
      d: () => { byId("documents-section").scrollIntoView(); list.focus({ preventScroll: true }); },
    };
    if (document.activeElement === list) { keys.ArrowDown = keys.j; keys.ArrowUp = keys.k; keys.PageDown = () => go(state.at + 15); keys.PageUp = () => go(state.at - 15); }
    if (/^[1-9]$/.test(e.key) && Number(e.key) <= index.systems.length) {
      byId("system").value = String(Number(e.key) - 1);
      byId("system").dispatchEvent(new Event("change"));
      e.preventDefault();
      return;
    }
    if ((e.key === "Home" || e.key === "End") && document.activeElement !== list) return;
    if (keys[e.key]) { keys[e.key](); e.preventDefault(); }
  });
  const linked = /^#doc=(.*)$/.exec(location.hash);
  let first = 0;
  if (linked) { try { first = Math.max(0, index.ids.indexOf(decodeURIComponent(linked[1]))); } catch { first = 0; } }
  filter(first);
  document.documentElement.dataset.ready = "yes";
})();
