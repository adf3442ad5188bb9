// One instance: the same text once for each system shown, with gold, predicted and soft marks.
function draw(data, row, i) {
  byId("name").textContent = visible(index.ids[i]);
  byId("place").textContent = (state.at + 1) + " / " + state.order.length;
  drawFacts(row, i);
  drawScores(i);
  byId("view").classList.toggle("haspair", Boolean(row.pair));
  view.className = "documents" + (row.pair ? " pair" : "");
  const shown = index.systems.length ? state.shown : [-1];
  const texts = row.docs.map((d, place) => layOut(data.docs[d], row, place, shown, byId("unfold").checked));
  const nodes = [];
  if (row.pair) {
    for (const system of shown) {
      const sides = make("div", "sides");
      texts.forEach((text, place) => {
        const side = make("article", "document");
        side.append(heading(row, data.docs[row.docs[place]], text, place), ...columnOf(text, row, system, place));
        sides.append(side);
      });
      const node = make("section", "system");
      if (system >= 0) node.append(systemHead(row, i, system));
      node.append(sides);
      nodes.push(node);
    }
  } else {
    texts.forEach((text, place) => {
      const article = make("article", "document"), columns = make("div", "columns");
      columns.dataset.columns = shown.length;
      for (const system of shown) {
        const node = make("div", "column");
        if (system >= 0) node.append(systemHead(row, i, system, place > 0));
        node.append(...columnOf(text, row, system, place));
        columns.append(node);
      }
      article.append(heading(row, data.docs[row.docs[place]], text, place), columns);
      nodes.push(article);
    });
  }
  for (const system of shown) {
    const said = row.systems[system];
    if (said && said.quotes) nodes.push(quoteList(said.quotes, index.systems.length > 1 ? visible(index.systems[system]) + ": " : ""));
  }
  view.replaceChildren(...nodes);
  if (state.drawn !== i) view.scrollTop = 0;
  state.drawn = i;
}
function drawFacts(row, i) {
  const facts = byId("facts");
  facts.replaceChildren();
  const fact = (name, value) => {
    const span = make("span", "", name + " "), shown = make("b", "", visible(value));
    shown.dir = "auto";
    span.append(shown);
    facts.append(span, document.createTextNode("   "));
  };
  if (row.query) fact("query", row.query);
  if (index.gold[i] >= 0) fact("gold", index.labels[index.gold[i]]);
  if (row.empty) fact("empty evidence spans, not drawn:", String(row.empty));
}
function drawScores(i) {
  const table = byId("all-scores").querySelector("table"), head = make("tr"), lines = [];
  head.append(make("th", "", "score"), ...state.shown.map((k) => make("th", "n", visible(index.systems[k]))));
  const keys = [...new Set(state.shown.flatMap((k) => Object.keys(scores(k))))];
  for (const key of keys) {
    const line = make("tr");
    line.append(make("th", "", index.names[key] || key), ...state.shown.map((k) => make("td", "n", number((scores(k)[key] || [])[i]))));
    lines.push(line);
  }
  table.replaceChildren(head, ...lines);
  byId("all-scores").hidden = !keys.length;
}
function systemHead(row, i, system, brief) {
  const head = make("p", "facts"), said = row.systems[system] || {}, place = index.predicted[system][i];
  head.append(swatch(system), " ", make("b", "", visible(index.systems[system])));
  if (brief) return head;
  if (place >= 0) {
    const label = index.labels[place], p = said.p ? said.p[label] : undefined, verdict = right(i, system);
    head.append(" ", make("bdi", "", visible(label)), verdict === null ? "" : verdict ? " ✓ right" : " ✗ wrong", p === undefined ? "" : " (p = " + number(p) + ")");
  }
  const key = byId("score").value, values = scores(system)[key];
  if (values) head.append(" · " + (index.names[key] || key) + " ", make("b", "", number(values[i])));
  return head;
}
