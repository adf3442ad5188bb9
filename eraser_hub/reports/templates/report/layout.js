// The layout of one text with its marks, as HTML.
function heading(row, doc, text, place) {
  const node = make("h4", "", row.titles ? row.titles[place] + " · " : "");
  node.append(make("bdi", "", visible(doc.id)), " · " + text.total + " tokens");
  return node;
}
function quoteList(quotes, whose) {
  const node = make("section", "quotes"), items = make("ol");
  for (const [text, status, place] of quotes) {
    const li = make("li", status), quote = make("q", "", visible(text));
    quote.dir = "auto";
    li.append(make("b", "", status.replace("_", " ")), " ", quote, make("span", "quiet", place ? " " + visible(place) : ""));
    items.append(li);
  }
  node.append(make("h4", "", whose + "quotes, as the model gave them, most important first"), items);
  return node;
}
// segments of a document (a sentence, or forty tokens of a very long one), gold, and what to keep for all systems shown
function layOut(doc, row, place, shown, all) {
  const lines = doc.text.split("\n").map((line) => line.split(" ").filter((token) => token));
  const total = lines.reduce((sum, line) => sum + line.length, 0);
  const groups = Array.from({ length: total }, () => null), starts = new Map(), marked = new Uint8Array(total);
  for (const [where, start, end, group] of row.gold) {
    if (where !== place) continue;
    for (let t = start; t < end; t += 1) {
      groups[t] = groups[t] || [];
      marked[t] = 1;
      if (!groups[t].includes(group)) groups[t].push(group);
    }
    if (!starts.has(start)) starts.set(start, new Set());
    starts.get(start).add(group);
  }
  for (const system of shown) {
    const said = row.systems[system];
    for (const [where, start, end] of (said && said.hard) || []) if (where === place) marked.fill(1, start, end);
  }
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
  const touched = segments.map((s) => s.tokens.some((_, k) => marked[s.from + k]));
  const any = touched.some(Boolean);
  const keep = segments.map((_, k) => all || (any ? touched[k - 1] || touched[k] || touched[k + 1] : k < 6));
  return { lang: doc.lang || "", total, groups, starts, segments, keep };
}
function columnOf(text, row, system, place) {
  const said = row.systems[system], inside = new Int32Array(text.total).fill(-1), opens = new Set(), closes = new Set();
  if (said && said.hard) {
    said.hard.forEach(([where, start, end], span) => {
      if (where !== place) return;
      for (let t = start; t < end; t += 1) inside[t] = span;
      opens.add(start);
      closes.add(end - 1);
    });
  }
  const soft = said && said.soft ? said.soft[place] : null, ranks = said && said.ranks ? said.ranks[place] : null;
  const shade = (t) => (soft ? Math.min(4, Math.floor(Number(soft.substr(2 * t, 2)) / 20)) : 0);
  const marks = { groups: text.groups, starts: text.starts, inside, opens, closes, shade, soft, ranks };
  const node = make("div", "text");
  node.lang = text.lang;
  const { segments, keep } = text;
  for (let k = 0; k < segments.length; k += 1) {
    if (keep[k]) { node.append(paragraph(segments[k], marks)); continue; }
    let end = k;
    while (end < segments.length && !keep[end]) end += 1;
    const hidden = segments.slice(k, end), tokens = hidden.reduce((sum, s) => sum + s.tokens.length, 0);
    if (tokens <= 15) hidden.forEach((s) => node.append(paragraph(s, marks)));
    else {
      const button = make("button", "fold", "… " + hidden.length + (hidden.length === 1 ? " line" : " lines") + ", " + tokens + " tokens without a mark …");
      button.type = "button";
      button.dataset.from = k;
      button.addEventListener("click", () => {
        const others = node.closest(".columns") ? [...node.closest(".columns").querySelectorAll(".fold")] : [];
        button.replaceWith(...hidden.map((s) => paragraph(s, marks)));
        others.filter((one) => one !== button && one.isConnected && one.dataset.from === button.dataset.from).forEach((one) => one.click());
      });
      node.append(button);
    }
    k = end - 1;
  }
  const nodes = [node];
  if (said && said.top && said.top[place]) nodes.push(topTokens(said.top[place], new Set(said.shared || [])));
  return nodes;
}
function topTokens(words, shared) {
  const top = make("div", "top"), ol = make("ol");
  words.forEach((word, k) => {
    const li = make("li", "", (k + 1) + " "), shown = make("span", shared.has(word) ? "both" : "", visible(word));
    shown.dir = "auto";
    li.append(shown);
    ol.append(li);
  });
  top.append(make("span", "quiet", "top tokens, most important first (underlined: on both sides)"), ol);
  return top;
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

