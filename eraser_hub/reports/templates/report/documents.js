// The list of instances: filtered, ordered, drawn where it is looked at.
const ROW = 28; // pixels, as in the style sheet
const list = byId("list"), rows = list.querySelector("ol"), view = byId("documents");
const chunks = new Map();
const chunk = (number) => {
  if (!chunks.has(number)) {
    if (chunks.size > 20) chunks.delete(chunks.keys().next().value);
    chunks.set(number, unpack("chunk-" + number));
  }
  return chunks.get(number);
};
function locate(instance) {
  let low = 0, high = index.chunks.length - 1; // the last chunk that starts at or before the instance
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (index.chunks[middle] <= instance) low = middle; else high = middle - 1;
  }
  return [low, instance - index.chunks[low]];
}
const RATIONALE = ["token_macro_f1", "token_f1", "auprc", "map", "comprehensiveness"];
const scores = (system) => state.values[system] || {};
const first = () => (state.shown.length ? state.shown[0] : 0);
const right = (i, system) => {
  const predicted = index.predicted[system];
  if (!predicted || predicted[i] < 0 || index.gold[i] < 0) return null;
  return predicted[i] === index.gold[i];
};
// the number beside each instance of the list, by the order: [name, values]
function column() {
  const order = byId("order").value, key = byId("score").value, own = scores(first());
  if (order === "disagreement") return ["disagreement of all systems", index.disagreement];
  if (order === "unsure" || order === "sure") return ["confidence", index.confidence[first()] || []];
  if (order === "suspect") {
    const rationale = RATIONALE.find((name) => own[name]);
    return [index.names[rationale] || "", own[rationale] || []];
  }
  if (order === "difference" && state.shown.length > 1) {
    const other = scores(state.shown[1])[key] || [];
    return ["difference in " + (index.names[key] || key), (own[key] || []).map((v, i) => (lost(v) || lost(other[i]) ? null : v - other[i]))];
  }
  return [index.names[key] || key, own[key]];
}
const bound = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
function filter(keep) {
  const text = byId("find").value.toLowerCase(), label = byId("label").value, verdict = byId("verdict").value, sort = byId("order").value;
  const low = bound("low"), high = bound("high"), shortest = bound("shortest"), longest = bound("longest");
  const bounded = scores(first())[byId("score").value], [, values] = column();
  const order = [];
  for (let i = 0; i < count; i += 1) {
    if (text && !index.ids[i].toLowerCase().includes(text)) continue;
    if (label !== "" && index.gold[i] !== Number(label)) continue;
    if (verdict && right(i, first()) !== (verdict === "right")) continue;
    if (sort === "suspect" && right(i, first()) !== true) continue;
    if ((shortest !== null && index.lengths[i] < shortest) || (longest !== null && index.lengths[i] > longest)) continue;
    if (low !== null || high !== null) {
      const value = bounded ? bounded[i] : null;
      if (lost(value) || (low !== null && value < low) || (high !== null && (value > high || (state.below && value === high)))) continue;
    }
    order.push(i);
  }
  if (sort && values) {
    const sign = sort === "up" || sort === "unsure" || sort === "suspect" ? 1 : -1;
    const size = sort === "difference" ? Math.abs : (v) => v;
    order.sort((a, b) => (lost(values[a]) - lost(values[b])) || (lost(values[a]) ? 0 : sign * (size(values[a]) - size(values[b]))) || a - b);
  }
  const was = keep === undefined ? (sort && sort !== state.sorted ? order[0] : state.order[state.at]) : keep;
  state.sorted = sort;
  state.order = order;
  state.at = Math.max(0, order.indexOf(was));
  rows.style.height = order.length * ROW + "px";
  byId("found").textContent = order.length + " of " + count;
  reveal();
  show();
}
function paint() {
  const from = Math.max(0, Math.floor(list.scrollTop / ROW) - 5);
  const end = Math.min(state.order.length, from + Math.ceil((list.clientHeight || 600) / ROW) + 10);
  const [title, values] = column();
  const nodes = [];
  for (let place = from; place < end; place += 1) {
    const i = state.order[place], verdict = right(i, first());
    const node = make("li");
    node.style.top = place * ROW + "px";
    node.dataset.place = place;
    node.id = "row-" + place;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", String(place === state.at));
    const sign = make("span", "sign", verdict === null ? "·" : verdict ? "✓" : "✗");
    sign.title = verdict === null ? "not known" : verdict ? "right" : "wrong";
    node.append(sign, make("span", "name", visible(index.ids[i])));
    if (values) {
      const value = make("span", "value", number(values[i]));
      value.title = title;
      node.append(value);
    }
    nodes.push(node);
  }
  rows.replaceChildren(...nodes);
  if (nodes.length) list.setAttribute("aria-activedescendant", "row-" + state.at); else list.removeAttribute("aria-activedescendant");
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
async function show() {
  const i = state.order[state.at];
  if (i === undefined) {
    byId("name").textContent = "nothing matches the filter";
    for (const node of [byId("facts"), view, byId("all-scores").querySelector("table")]) node.replaceChildren();
    byId("place").textContent = "";
    remember();
    return;
  }
  const [block, offset] = locate(i);
  const data = await chunk(block);
  if (state.order[state.at] !== i) return; // a later step overtook this one
  draw(data, data.rows[offset], i);
  remember();
}

