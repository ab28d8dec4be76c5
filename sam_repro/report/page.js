// Sorting: a click on a column's head, or on a phone the choice above the table. Without JavaScript the page only loses this.
function sortTable(table, column, descending) {
  const value = row => {
    const cell = row.cells[column], number = cell.dataset.value;
    if (number !== undefined) return number === "" ? null : Number(number);
    const text = (cell.querySelector("summary") ?? cell).textContent.trim(), shown = cell.tagName === "TD" ? parseFloat(text) : NaN;
    return text === "–" ? null : Number.isNaN(shown) ? text : shown; // "69.84 ± 0.12" is 69.84
  };
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, index) => ({ row, index, key: value(row) }));
  rows.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.index - b.index; // empty ones last
    const order = typeof a.key === "number" ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true });
    return (descending ? -order : order) || a.index - b.index;
  });
  body.append(...rows.map(item => item.row));
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    if (index === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => sortTable(table, column, head.getAttribute("aria-sort") === "ascending"));
  });
  table.closest(".wide").previousElementSibling?.querySelector("select")?.addEventListener("change", event => {
    if (event.target.value) sortTable(table, Math.abs(event.target.value) - 1, event.target.value < 0);
  });
}
// Filtering: a row is shown if it has what is chosen and every word that is searched for.
for (const form of document.querySelectorAll("form.filter")) {
  const rows = [...form.parentNode.querySelector("table").tBodies[0].rows]
    .map(row => ({ row, kinds: row.dataset.kinds.split(" ").map(Number), text: row.textContent.toLowerCase() }));
  const apply = () => {
    const lists = [...form.querySelectorAll("select")]; // the first option of each is "any"
    const words = form.querySelector("input").value.toLowerCase().split(/\s+/);
    for (const { row, kinds, text } of rows) row.hidden = !(lists.every((list, place) => !list.value || kinds[place] === list.selectedIndex - 1) && words.every(word => text.includes(word)));
    form.querySelector("output").textContent = `${rows.filter(({ row }) => !row.hidden).length} cells`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
}
// A link to what is folded opens it.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let item = target; item; item = item.parentElement) if (item.tagName === "DETAILS") item.open = true;
  target.querySelector("th > details")?.setAttribute("open", "");
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (location.hash) reveal();
// A printed page has no click: everything that is folded opens.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(item => item.open = true));
