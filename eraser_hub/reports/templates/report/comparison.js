// The matrix of differences against a baseline, for a family of scores.
async function compareAll() {
  if (!byId("comparison") || !byId("differences")) return;
  const data = await unpack("comparison"), table = byId("differences"), n = data.names.length;
  const baseline = byId("baseline"), group = byId("group");
  data.names.forEach((name, k) => option(baseline, String(k), visible(name)));
  const named = table.caption.textContent.replace("By how much each system is better than ", "");
  baseline.value = String(data.names.indexOf(named));
  option(group, "", "headline");
  for (const name of new Set(data.groups.slice(data.headline))) option(group, name, name + ", exploratory");
  const pair = (a, b) => a * n - (a * (a + 1)) / 2 + (b - a - 1); // of the rows of all pairs, a before b
  const turned = { better: "worse", worse: "better" };
  const p = (value) => (value === null ? "–" : value < 0.001 ? "<0.001" : value.toFixed(3));
  function cell(test, back) {
    const node = make("td", "n");
    if (!test) return node;
    const [difference, low, high, raw, corrected, place] = test, sign = back ? -1 : 1;
    const word = back ? turned[data.verdicts[place]] || data.verdicts[place] : data.verdicts[place];
    const text = number(sign * difference), ends = low === null ? "" : "[" + number(back ? -high : low) + ", " + number(back ? -low : high) + "]";
    const small = [ends, corrected === null ? "p " + p(raw) + ", not corrected" : "p " + p(corrected), word].filter(Boolean).join(" · ");
    node.append((word === "better" ? "★ " : "") + (sign * difference > 0 && Number(text) ? "+" : "") + text + " ", make("small", "", small));
    return node;
  }
  function fill() {
    const against = Number(baseline.value), family = group.value;
    const keys = data.keys.map((_, k) => k).filter((k) => (family === "" ? k < data.headline : k >= data.headline && data.groups[k] === family));
    const head = make("tr"), lines = [];
    head.append(make("th", "", "system"), ...keys.map((k) => scoreHead(data, k)));
    for (const th of head.children) th.scope = "col";
    data.names.forEach((name, k) => {
      if (k === against) return;
      const line = make("tr"), th = make("th");
      th.scope = "row";
      const place = index.systems.indexOf(name);
      th.append(place < 0 ? "" : swatch(place), " " + visible(name));
      line.append(th);
      for (const key of keys) {
        const td = cell(data.tests[pair(Math.min(k, against), Math.max(k, against))][key], k > against);
        td.dataset.system = name;
        td.dataset.key = data.keys[key];
        td.dataset.head = data.labels[key];
        line.append(td);
      }
      lines.push(line);
    });
    table.caption.textContent = "By how much each system is better than " + visible(data.names[against]);
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...lines);
    table.classList.toggle("wide", keys.length > 3);
    table.classList.toggle("many", keys.length > 11);
    addPicker(table);
  }
  for (const control of [baseline, group]) control.addEventListener("change", fill);
}
function scoreHead(data, k) {
  const th = make("th", "n"), id = "about-" + data.keys[k];
  if (!byId(id)) { th.textContent = data.labels[k]; return th; }
  const button = make("button", "about", data.labels[k]);
  button.type = "button";
  button.setAttribute("popovertarget", id);
  th.append(button);
  return th;
}

