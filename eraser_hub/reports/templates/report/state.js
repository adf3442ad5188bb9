// What is shown, as the address has it: #doc=ID&systems=A,B&order=..&label=..&score=..&low=..&high=..
const index = JSON.parse(byId("index").textContent);
const count = index.ids.length;
const MOST = 4; // systems side by side
const state = { shown: index.systems.map((_, k) => k).slice(0, 2), order: [], at: 0, below: false, values: [] };
// the controls that the address holds, and its name for each
const FIELDS = { order: "order", score: "score", label: "label", verdict: "verdict", low: "low", high: "high", shortest: "shortest", longest: "longest", find: "find" };

const encode = encodeURIComponent;
const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
const isDefault = (systems) => systems.join() === index.systems.map((_, k) => k).slice(0, 2).join();
function address() {
  const parts = [], i = state.order[state.at];
  if (i !== undefined) parts.push("doc=" + encode(index.ids[i]));
  if (!isDefault(state.shown)) parts.push("systems=" + state.shown.map((k) => encode(index.systems[k])).join(","));
  for (const [name, id] of Object.entries(FIELDS)) {
    const control = byId(id);
    if (id === "score" && control.value === state.usual) continue;
    if (control.value !== "") parts.push(name + "=" + encode(id === "label" ? index.labels[Number(control.value)] : control.value));
  }
  if (state.below) parts.push("below=1");
  return "#" + parts.join("&");
}
function remember() {
  try { history.replaceState(null, "", address()); } catch { /* a page without a history */ }
}
// true where the address says what to show
function restore(hash) {
  const given = new Map();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at > 0) given.set(part.slice(0, at), part.slice(at + 1));
  }
  if (![...given.keys()].some((name) => name === "doc" || name === "systems" || name in FIELDS)) return false;
  if (given.has("systems")) {
    const systems = given.get("systems").split(",").map((name) => index.systems.indexOf(decode(name))).filter((k) => k >= 0);
    if (systems.length) choose([...new Set(systems)].slice(0, MOST));
  }
  for (const [name, id] of Object.entries(FIELDS)) {
    const control = byId(id), value = decode(given.get(name) || "");
    const wanted = id === "label" && value !== "" ? String(index.labels.indexOf(value)) : id === "score" && value === "" ? state.usual : value;
    control.value = wanted || "";
    if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = id === "score" ? state.usual || "" : "";
  }
  state.below = given.get("below") === "1";
  byId("browser").querySelector(".filters").open = ["label", "verdict", "low", "high", "shortest", "longest"].some((id) => byId(id).value !== "");
  const first = given.has("doc") ? index.ids.indexOf(decode(given.get("doc"))) : -1;
  filter(first < 0 ? undefined : first);
  return true;
}

