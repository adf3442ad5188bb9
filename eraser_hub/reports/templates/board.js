// Filters, and the address: #group=NAME&find=WORDS&all=1&sort=KEY:descending opens the page as it is shown.
(() => {
  const controls = ["group", "find", "all"].map((id) => document.getElementById(id));
  const sections = [...document.querySelectorAll("section")], heads = [...document.querySelectorAll("thead th")];
  const rows = [...document.querySelectorAll("tbody tr")].map((row) => [row, row.cells[0].textContent.toLowerCase()]);
  const state = () => new URLSearchParams(location.hash.slice(1));
  let sorted = "";

  function show() {
    const [group, find, all] = controls, words = find.value.toLowerCase();
    for (const [row, text] of rows) row.hidden = !text.includes(words);
    for (const section of sections) section.hidden = (group.value && section.dataset.name !== group.value) || !section.querySelector("tbody tr:not([hidden])");
    const count = document.querySelectorAll("section:not([hidden]) tbody tr:not([hidden])").length;
    document.getElementById("found").textContent = `${count} of ${rows.length} rows`;
    const chosen = { group: group.value, find: find.value, all: all.checked ? "1" : "", sort: sorted };
    const hash = String(new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)));
    if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? "#" + hash : location.pathname);
  }

  // a click sorts a table (table.js); by address every table is sorted that has the score
  for (const head of heads) head.addEventListener("click", () => { sorted = `${head.dataset.key}:${head.getAttribute("aria-sort")}`; show(); });
  function restore() {
    const [group, find, all] = controls, given = state(), [key, direction] = (given.get("sort") || "").split(":");
    group.value = given.get("group") || "";
    if (group.selectedIndex < 0) group.value = "";
    find.value = given.get("find") || "";
    all.checked = given.get("all") === "1";
    for (const head of heads.filter((one) => one.dataset.key === key))
      for (let turn = 0; turn < 2 && head.getAttribute("aria-sort") !== direction; turn++) head.querySelector("button").click();
    show();
  }
  for (const control of controls) control.addEventListener("input", show);
  document.forms[0].addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", restore);
  restore();
})();
