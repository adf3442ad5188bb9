// On a narrow screen a large table shows one column at a time, which a menu above it chooses.
const narrow = matchMedia("(max-width: 40rem)");
const LARGE = 30; // cells
function showColumn(table, place) {
  for (const row of table.rows) [...row.cells].slice(1).forEach((cell, k) => { cell.hidden = place >= 0 && k !== place; });
  table.classList.toggle("one", place >= 0);
}
function addPicker(table) {
  const scroll = table.parentNode, old = scroll.previousElementSibling, heads = [...table.tHead.rows[0].cells].slice(1);
  if (old && old.classList.contains("picker")) old.remove();
  showColumn(table, -1);
  if (!narrow.matches || heads.length < 4 || heads.length * table.tBodies[0].rows.length < LARGE) return;
  const label = make("label", "picker", "Column "), select = make("select");
  heads.forEach((head, k) => option(select, String(k), head.textContent.trim()));
  select.addEventListener("change", () => showColumn(table, Number(select.value)));
  label.append(select);
  scroll.before(label);
  showColumn(table, 0);
}
function addPickers() {
  const tables = () => document.querySelectorAll("main .scroll > table");
  const all = () => tables().forEach(addPicker);
  narrow.addEventListener("change", all);
  addEventListener("beforeprint", () => tables().forEach((table) => showColumn(table, -1)));
  addEventListener("afterprint", all);
  all();
}
