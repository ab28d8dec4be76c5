// Every number of the page stands in it as it is: without JavaScript it only loses sorting, filters and what a cell opens.
// A cell's details: how to train it, its cost, runs and links, of the data that `_details` in page_cells.py has written.
function element(tag, text, link) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (link) made.href = `#${link}`;
  return made;
}
function details([sweep, budget, device, epochs, anchor, rows], [cells, cost, runs = [], time, values = [], baseline, curves, differences = [], seeds, why]) {
  const lines = [], line = (name, ...parts) => lines.push([name, parts]);
  if (why) line("not run", why);
  if (cells) line("command", element("code", `${sweep} ${cells}${budget}`));
  if (cost) {
    const [count, passes, hours] = cost;
    line("cost", `${count > 1 ? `${count} runs of` : "a run of"} ${passes} passes${hours ? `, ${hours} on one ${device}, estimated` : ""}`);
  }
  const ended = [];
  for (let i = 0; i < runs.length; i += 2) ended.push(`${i ? "; " : ""}seed ${runs[i]}: `, element("code", runs[i + 1]));
  if (runs.length) line("runs", ...ended, `, in ${time}`);
  values.forEach((value, place) => { if (value) line(epochs[place], value); });
  if (baseline) line("to the baseline", baseline);
  if (curves) line("curves", element("a", "of the row", anchor + curves));
  if (seeds) line("seeds", seeds);
  const links = differences.flatMap(row => [element("a", row, `d${row}`), " "]);
  if (rows) links.push(element("a", "those of every cell", `${anchor}-rows`));
  if (links.length) line("paper against code, rows", ...links);
  return lines.map(([name, parts]) => {
    const made = element("p", "");
    made.append(element("b", name), " ", ...parts);
    return made;
  });
}
const shown = document.querySelectorAll("#cells tbody details"), tables = document.getElementById("details");
let place = 0;
for (const table of tables ? JSON.parse(tables.textContent) : []) for (const cell of table.pop()) shown[place++].append(...details(table, cell));
// Sorting: a click on a column's head, or on a phone the choice above the table.
function sortTable(table, column, descending) {
  const value = row => {
    const cell = row.cells[column], number = cell.dataset.value;
    if (number !== undefined) return number === "" ? null : Number(number);
    const text = (cell.querySelector("summary") ?? cell).textContent.trim(), shown = cell.tagName === "TD" ? parseFloat(text) : NaN;
    return text === "" ? null : Number.isNaN(shown) ? text : shown; // "69.84 ± 0.12" is 69.84
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
  const list = document.createElement("select"), label = document.createElement("label");
  list.add(new Option("as listed", ""));
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    for (const [sign, arrow] of [["", "↑"], ["-", "↓"]]) list.add(new Option(`${head.textContent} ${arrow}`, `${sign}${column + 1}`));
  });
  list.addEventListener("change", () => { if (list.value) sortTable(table, Math.abs(list.value) - 1, list.value < 0); });
  label.className = "sorter";
  label.append("Sort by ", list);
  table.closest(".wide").before(label);
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
