/* Tables of the class "sortable": headers sort, a field above filters. They stay so when new rows come in. */
(function () {
  "use strict";
  var FEW = 6; // rows that need no filter
  function text(row, column) { return row.cells[column].textContent.trim(); }
  function number(word) { return parseFloat(word.replace("−", "-").replace(/,/g, "")); }

  /* Numbers by their size, before words; "ε = 0.5" by its number among its like. */
  function compare(a, b) {
    var x = number(a), y = number(b);
    if (!isNaN(x) && !isNaN(y) && x !== y) { return x - y; }
    if (isNaN(x) !== isNaN(y)) { return isNaN(x) ? 1 : -1; }
    return a.localeCompare(b, "en", { numeric: true });
  }

  function sort(table) {
    var header = table.querySelector("thead [aria-sort]");
    if (!header) { return; }
    var body = table.tBodies[0], sign = header.getAttribute("aria-sort") === "descending" ? -1 : 1;
    var rows = Array.from(body.rows), column = header.cellIndex;
    var sorted = rows.slice().sort(function (a, b) { return sign * compare(text(a, column), text(b, column)); });
    if (sorted.some(function (row, i) { return row !== rows[i]; })) { body.append.apply(body, sorted); }
  }

  function filter(table, words) {
    var wanted = words.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
    Array.from(table.tBodies[0].rows).forEach(function (row) {
      var all = row.textContent.toLowerCase();
      row.hidden = !wanted.every(function (word) { return all.includes(word); });
      shown += !row.hidden;
    });
    return shown;
  }

  function headers(table) {
    table.querySelectorAll("thead th").forEach(function (header) {
      var button = document.createElement("button");
      button.type = "button";
      button.append.apply(button, Array.from(header.childNodes));
      header.append(button);
      button.addEventListener("click", function () {
        var up = header.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("thead [aria-sort]").forEach(function (one) { one.removeAttribute("aria-sort"); });
        header.setAttribute("aria-sort", up ? "descending" : "ascending");
        sort(table);
      });
    });
  }

  function field(table) {
    var region = table.closest(".scroll"), box = document.getElementById(region.id.replace("table", "filter"));
    var input = document.createElement("input"), count = document.createElement("span");
    input.type = "search";
    input.placeholder = "Filter";
    input.setAttribute("aria-label", table.dataset.filter);
    count.setAttribute("role", "status");
    box.append(input, count);
    table.fresh = function () {
      sort(table);
      var shown = filter(table, input.value);
      box.hidden = table.tBodies[0].rows.length < FEW && !input.value;
      var words = input.value.trim() ? shown + " of " + table.tBodies[0].rows.length : "";
      if (count.textContent !== words) { count.textContent = words; }
    };
    input.addEventListener("input", table.fresh);
  }

  function ready() {
    document.querySelectorAll("table.sortable").forEach(function (table) {
      if (!table.fresh) { headers(table); field(table); }
      table.fresh();
    });
  }

  document.addEventListener("fresh", ready);
  ready();

  // A plan takes seconds: that they pass is shown beside the button.
  var form = document.getElementById("new");
  if (form) {
    form.addEventListener("submit", function (event) {
      document.getElementById("working").hidden = !event.submitter || event.submitter.value !== "plan";
    });
    window.addEventListener("pageshow", function () { document.getElementById("working").hidden = true; });
  }
})();
