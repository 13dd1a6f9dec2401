/* Draws the page's figures and fits colours and panels to the reader; unpacks plotly.js where it is in the page itself.
Tables that are wider than the page show where they go on. A page whose content changes tells it by the event "fresh".

Every figure is drawn for a wide, light page. Here its colours follow the reader's scheme, and on a narrow page its
legend goes above the panels and panels side by side go below each other. Without this script, or in a browser that
cannot unpack, the data tables of the figures stay open in their place. */
(function () {
  "use strict";
  var DARK = window.matchMedia("screen and (prefers-color-scheme: dark)"); // paper stays light
  var NARROW = window.matchMedia("(max-width: 640px)");
  // Colours of results/figures/style.py -> theirs on a dark page; those left out can be seen on both.
  var ON_DARK = {
    "#1a1a1a": "#e6e8ea", "#6b6b6b": "#a7adb3", "#e8e8e8": "#33383d", "#dfe7ee": "#2b3640", "rgba(0,0,0,0.06)": "rgba(255,255,255,0.09)",
    "#0072b2": "#3594da", "#56b4e9": "#94d6ff", "#d55e00": "#f0873d", "#440154": "#b58ad9", "#46327e": "#9a91e0", "#365c8d": "#6fa3dc", "#277f8e": "#45b3c2",
    "rgba(26,26,26,0.16)": "rgba(230,232,234,0.2)", "rgba(0,114,178,0.16)": "rgba(53,148,218,0.24)", "rgba(213,94,0,0.16)": "rgba(240,135,61,0.22)"
  };
  var PANEL = 250; // pixels of a panel's height on a narrow page
  var ENTRY = 22; // pixels of a line of the legend
  var SHARPNESS = 3; // pixels of a saved PNG to one of the page

  function unpacked(id) {
    var packed = atob(document.getElementById(id).textContent.trim());
    var bytes = Uint8Array.from(packed, function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  function recoloured(text) {
    if (!DARK.matches) { return text; }
    var known = Object.keys(ON_DARK).map(function (c) { return c.replace(/[()]/g, "\\$&"); });
    return text.replace(new RegExp(known.join("|"), "gi"), function (colour) { return ON_DARK[colour.toLowerCase()]; });
  }

  /* The panels of a figure from the top left on: names of their axes and where they are. */
  function panels(layout) {
    return Object.keys(layout).filter(function (key) { return /^xaxis\d*$/.test(key); }).map(function (x) {
      var anchor = layout[x].anchor || "y";
      var y = "yaxis" + anchor.slice(1);
      return { x: x, y: y, across: layout[x].domain || [0, 1], up: layout[y].domain || [0, 1] };
    }).sort(function (a, b) { return b.up[1] - a.up[1] || a.across[0] - b.across[0]; });
  }

  function near(a, b) { return Math.abs(a - b) < 1e-6; }

  /* One panel below the other. The titles of axes that neighbours shared are given to each, as are their numbers. */
  function stack(layout) {
    var all = panels(layout), gap = 0.3 / all.length, step = (1 + gap) / all.length;
    var beside = all.some(function (one, i) { return i && near(one.up[1], all[i - 1].up[1]); });
    if (!beside) { return; }
    var titles = (layout.annotations || []).filter(function (note) { return note.xref === "paper" && note.yref === "paper"; });
    all.forEach(function (panel, i) {
      var top = 1 - i * step, bottom = Math.max(top - step + gap, 0);
      var first = all.find(function (one) { return near(one.up[1], panel.up[1]); });
      var last = all.filter(function (one) { return near(one.across[0], panel.across[0]); }).pop();
      var x = layout[panel.x], y = layout[panel.y];
      titles.forEach(function (note) {
        if (!note.placed && near(note.y, panel.up[1]) && near(note.x, (panel.across[0] + panel.across[1]) / 2)) {
          Object.assign(note, { x: 0.5, y: top, placed: true });
        }
      });
      Object.assign(x, { domain: [0, 1], showticklabels: true, title: x.title || layout[last.x].title });
      Object.assign(y, { domain: [bottom, top], title: y.title || layout[first.y].title, ticks: layout[first.y].ticks });
      if (y.visible !== false) { y.showticklabels = true; }
    });
    titles.forEach(function (note) { delete note.placed; });
    layout.height = 110 + PANEL * all.length;
  }

  function narrowed(figure) {
    var layout = figure.layout;
    stack(layout);
    // Labels of points would lie over each other; the data table has their values.
    figure.data.forEach(function (trace) { if (trace.mode === "markers+text") { trace.mode = "markers"; } });
    var entries = figure.data.filter(function (trace) { return trace.showlegend !== false && trace.name; }).length;
    if (layout.showlegend === false || entries < 2) { return; }
    layout.legend = { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "top", yref: "container" };
    layout.margin = Object.assign({}, layout.margin, { l: 44, r: 8, t: 24 + ENTRY * Math.ceil(entries * 0.75) });
    layout.height += ENTRY * entries * 0.5;
  }

  /* Those that have changed since they were drawn; their zoom, and what is hidden in their legends, stay. */
  function draw() {
    document.querySelectorAll("script.drawing").forEach(function (source) {
      var place = document.getElementById(source.dataset.place);
      if (place.closest("details:not([open])")) { return; } // it has no width until it is unfolded
      place.parentElement.querySelectorAll(".save").forEach(function (buttons) { buttons.hidden = false; });
      var text = recoloured(source.textContent), look = NARROW.matches + text;
      if (place.drawn === look) { return; }
      var figure = JSON.parse(text), data = place.parentElement.querySelector("details.data");
      if (!place.drawn && data) { data.open = false; }
      place.drawn = look;
      figure.layout.uirevision = "kept";
      if (NARROW.matches) { narrowed(figure); }
      place.style.height = figure.layout.height + "px";
      Plotly.react(place, figure.data, figure.layout, JSON.parse(source.dataset.config)).then(function () {
        // Of the drawing a screen reader would read loose numbers; its name, caption and data table say more.
        place.querySelectorAll(".main-svg").forEach(function (svg) { svg.setAttribute("aria-hidden", "true"); });
      });
    });
  }

  function ready() {
    if (window.Plotly) { return Promise.resolve(); }
    return unpacked("plotly").then(function (code) {
      var script = document.createElement("script");
      script.textContent = code;
      document.head.appendChild(script);
    });
  }

  Promise.resolve().then(ready).then(function () {
    draw();
    document.addEventListener("fresh", draw);
    DARK.addEventListener("change", draw);
    NARROW.addEventListener("change", draw);
  }).catch(function () { document.documentElement.classList.add("undrawn"); });

  /* Whether a table goes on at any side, which most devices show only while it is scrolled. */
  function look(region) {
    region.classList.toggle("left", region.scrollLeft > 1);
    region.classList.toggle("right", region.scrollLeft + region.clientWidth < region.scrollWidth - 1);
    region.classList.toggle("above", region.scrollTop > 1);
    region.classList.toggle("below", region.scrollTop + region.clientHeight < region.scrollHeight - 1);
  }
  var resized = new ResizeObserver(function (entries) { entries.forEach(function (entry) { look(entry.target); }); });
  function watch() {
    document.querySelectorAll(".scroll").forEach(function (region) { look(region); resized.observe(region); });
  }
  // Neither event bubbles.
  document.addEventListener("scroll", function (event) {
    if (event.target !== document && event.target.classList.contains("scroll")) { look(event.target); }
  }, { passive: true, capture: true });
  document.addEventListener("toggle", function (event) {
    event.target.querySelectorAll(".scroll").forEach(look);
    if (window.Plotly) { draw(); }
  }, true);
  document.addEventListener("fresh", watch);
  watch();

  /* Paper shows all parts but the data of figures. A reader who closed a part finds it closed again. */
  var unfolded = [];
  window.addEventListener("beforeprint", function () {
    unfolded = Array.from(document.querySelectorAll("details:not([open]):not(.data)"));
    unfolded.forEach(function (part) { part.open = true; });
    if (window.Plotly) { draw(); }
  });
  window.addEventListener("afterprint", function () {
    unfolded.forEach(function (part) { part.open = false; });
    unfolded = [];
  });

  /* A figure as it is in its light scheme, whatever the reader's, and all rows of a table as its CSV file. */
  document.addEventListener("click", function (event) {
    var button = event.target.closest("button[data-save]");
    if (!button) { return; }
    var figure = button.closest("figure"), source = figure.querySelector("script.drawing");
    if (button.dataset.save === "csv") {
      var rows = Array.from(figure.querySelectorAll("script.rows")).find(function (one) {
        return one.dataset.table === button.dataset.table;
      });
      var file = URL.createObjectURL(new Blob([JSON.parse(rows.textContent)], { type: "text/csv" }));
      save(file, button.dataset.table + ".csv");
      setTimeout(function () { URL.revokeObjectURL(file); }, 10000);
      return;
    }
    var drawing = JSON.parse(source.textContent), height = drawing.layout.height;
    var width = Math.max(document.getElementById(source.dataset.place).clientWidth, 640);
    var name = source.dataset.place.replace("figure-", "") + "." + button.dataset.save;
    Object.assign(drawing.layout, { paper_bgcolor: "white", plot_bgcolor: "white" });
    Plotly.toImage(drawing, { format: "svg", width: width, height: height }).then(function (svg) {
      if (button.dataset.save === "svg") { save(svg, name); } else { rasterise(svg, width, height, name); }
    });
  });

  function save(url, name) {
    var link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
  }

  /* Not by plotly, which takes a blob for it: the pages of the service load images of data alone. */
  function rasterise(svg, width, height, name) {
    var image = new Image(), canvas = document.createElement("canvas");
    canvas.width = SHARPNESS * width;
    canvas.height = SHARPNESS * height;
    image.onload = function () {
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      save(canvas.toDataURL("image/png"), name);
    };
    image.src = svg;
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button[data-copy]");
    if (!button) { return; }
    var range = document.createRange();
    range.selectNodeContents(document.getElementById(button.dataset.copy));
    var selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    if (document.execCommand("copy")) {
      button.textContent = "Copied";
      button.parentElement.querySelector("[role=status]").textContent = "Copied to the clipboard";
    }
  });
})();
