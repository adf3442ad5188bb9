// Controls, keys, links, and the first drawing.
function choose(systems) {
  state.shown = systems;
  for (const box of byId("systems").querySelectorAll("input")) box.checked = systems.includes(Number(box.value));
  const several = systems.length > 1, order = byId("order");
  for (const one of order.options) one.hidden = (one.value === "difference" && !several) || (one.value === "disagreement" && index.systems.length < 2);
  if (order.value === "difference" && !several) order.value = "";
  fillScores();
}
function fillScores() {
  const select = byId("score"), was = select.value, keys = Object.keys(scores(first()));
  select.replaceChildren();
  for (const key of keys) option(select, key, index.names[key] || key);
  state.usual = RATIONALE.find((key) => keys.includes(key)) || keys[0] || "";
  select.value = keys.includes(was) ? was : state.usual;
  for (const id of ["score", "low", "high"]) byId(id).disabled = !keys.length;
}
function flip(system, alone) {
  const has = state.shown.includes(system);
  let systems = alone ? [system] : has ? state.shown.filter((k) => k !== system) : [...state.shown, system].slice(-MOST);
  if (!systems.length) systems = [system];
  choose(systems);
  filter();
}
function addControls() {
  index.systems.forEach((name, k) => {
    const label = make("label", "inline"), box = make("input");
    box.type = "checkbox";
    box.value = String(k);
    box.addEventListener("change", () => flip(k));
    label.append(box, swatch(k), make("span", "", visible(name)));
    byId("systems").append(label);
  });
  index.labels.forEach((name, k) => { if (index.gold.includes(k)) option(byId("label"), String(k), visible(name)); });
  if (!index.systems.length) for (const node of document.querySelectorAll(".says")) node.hidden = true; // nothing was predicted
  if (index.systems.length === 1) byId("systems").hidden = true;
  for (const id of ["label", "verdict", "score", "order"]) byId(id).addEventListener("change", () => filter());
  for (const id of ["find", "low", "high", "shortest", "longest"]) byId(id).addEventListener("input", () => { if (id === "high") state.below = false; filter(); });
  const toggles = { gold: "nogold", pred: "nopred", soft: "nosoft" };
  for (const id of Object.keys(toggles)) byId("show-" + id).addEventListener("change", (e) => byId("view").classList.toggle(toggles[id], !e.target.checked));
  byId("unfold").addEventListener("change", () => show());
  byId("next").addEventListener("click", () => go(state.at + 1));
  byId("previous").addEventListener("click", () => go(state.at - 1));
  byId("reset").addEventListener("click", () => {
    for (const id of Object.values(FIELDS)) byId(id).value = "";
    state.below = false;
    choose(index.systems.map((_, k) => k).slice(0, 2));
    filter();
  });
  byId("share").addEventListener("click", async () => {
    const button = byId("share");
    let shown = byId("address");
    if (!shown) {
      shown = make("input");
      shown.id = "address";
      shown.readOnly = true;
      shown.setAttribute("aria-label", "Address of this view");
      button.after(shown);
    }
    shown.value = location.href.split("#")[0] + address();
    shown.select();
    try { await navigator.clipboard.writeText(shown.value); } catch { /* it stands there, selected, to be copied */ }
  });
  list.addEventListener("scroll", paint, { passive: true });
  rows.addEventListener("click", (e) => { const li = e.target.closest("li"); if (li) go(Number(li.dataset.place)); });
}
function toDocuments() {
  byId("documents-section").scrollIntoView();
  list.focus({ preventScroll: true });
}
function press(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "checkbox";
  if (typing) { if (e.key === "Escape") e.target.blur(); return; }
  const tick = (id) => { const box = byId(id); box.checked = !box.checked; box.dispatchEvent(new Event("change")); };
  const keys = {
    j: () => go(state.at + 1), ArrowRight: () => go(state.at + 1), k: () => go(state.at - 1), ArrowLeft: () => go(state.at - 1),
    Home: () => go(0), End: () => go(state.order.length - 1),
    u: () => tick("unfold"), g: () => tick("show-gold"), p: () => tick("show-pred"), s: () => tick("show-soft"),
    "/": () => byId("find").focus(), d: toDocuments,
  };
  if (document.activeElement === list) { keys.ArrowDown = keys.j; keys.ArrowUp = keys.k; keys.PageDown = () => go(state.at + 15); keys.PageUp = () => go(state.at - 15); }
  const digit = /^Digit([1-9])$/.exec(e.code || "") || /^([1-9])$/.exec(e.key);
  if (digit && Number(digit[1]) <= index.systems.length) {
    flip(Number(digit[1]) - 1, !e.shiftKey);
    e.preventDefault();
    return;
  }
  if ((e.key === "Home" || e.key === "End") && document.activeElement !== list) return;
  if (keys[e.key]) { keys[e.key](); e.preventDefault(); }
}
function openTarget(hash) {
  const target = byId(decode(hash.slice(1)));
  if (target && target.tagName === "DETAILS") target.open = true;
}
async function start() {
  state.values = await unpack("values");
  addControls();
  choose(state.shown);
  document.addEventListener("keydown", press);
  document.addEventListener("click", (e) => {
    const link = e.target.closest('a[href^="#"]'), hash = link ? link.getAttribute("href") : "";
    if (hash.includes("=") && restore(hash)) { e.preventDefault(); toDocuments(); } else if (hash) openTarget(hash);
  });
  addEventListener("hashchange", () => { if (restore(location.hash)) toDocuments(); else openTarget(location.hash); });
  addEventListener("beforeprint", () => { for (const node of document.querySelectorAll("main > details, .more")) node.open = true; });
  if (restore(location.hash)) toDocuments();
  else { openTarget(location.hash); filter(0); }
  await compareAll();
  addSaving();
  addPickers();
  document.documentElement.dataset.ready = "yes";
}
start();
