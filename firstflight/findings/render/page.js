"use strict";
// Without this script all tables are there, in the order of the run.
const numberOf = text => parseFloat(text.replace("−", "-").replace(/^[^\d-]+/, ""));

function compare(one, other) {
  const [a, b] = [numberOf(one), numberOf(other)];
  if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b) || one.localeCompare(other);
  return a - b || one.localeCompare(other);
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.querySelectorAll("tr.names th")];
  heads.forEach((head, column) => {
    // A button element would be missing where print repeats the header.
    const button = head.firstElementChild;
    button.setAttribute("role", "button");
    button.tabIndex = 0;
    button.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    });
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      body.append(...[...body.rows].sort((a, b) =>
        direction * compare(a.cells[column].textContent, b.cells[column].textContent)));
    });
  });
}

function makeFilterable(table) {
  const rows = [...table.tBodies[0].rows];
  const bar = document.createElement("div");
  bar.className = "filters";
  const count = document.createElement("output");
  const selects = [];
  const apply = () => {
    const wanted = selects.filter(([select]) => select.value !== "");
    rows.forEach(row => {
      row.hidden = wanted.some(([select, column]) => row.cells[column].textContent !== select.value);
    });
    const shown = rows.filter(row => !row.hidden).length;
    count.textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
  };
  [...table.querySelectorAll("tr.names th")].forEach((head, column) => {
    if (!head.hasAttribute("data-filter")) return;
    const values = [...new Set(rows.map(row => row.cells[column].textContent))];
    if (values.length < 2 || values.length > 60) return;
    const label = document.createElement("label");
    const select = document.createElement("select");
    select.append(new Option("all", ""), ...values.sort(compare).map(value => new Option(value, value)));
    select.addEventListener("change", apply);
    label.append(head.textContent.trim() + " ", select);
    bar.append(label);
    selects.push([select, column]);
  });
  if (!selects.length) return;
  const all = document.createElement("button");
  all.type = "button";
  all.textContent = "show all";
  all.addEventListener("click", () => { selects.forEach(([select]) => { select.value = ""; }); apply(); });
  bar.append(all, count);
  table.parentElement.before(bar);
  apply();
}

document.querySelectorAll("table.sortable").forEach(table => { makeSortable(table); makeFilterable(table); });
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(details => { details.open = true; }));
document.querySelectorAll(".drawing").forEach(drawing => {
  const toggle = () => drawing.classList.toggle("large");
  drawing.addEventListener("click", toggle);
  drawing.addEventListener("keydown", event => { if (event.key === "Enter") toggle(); });
});
