/* Keeps a page up to date: hears of events, shows progress at once, and lets htmx fetch what else has changed.

Without this script every page is as it was when it was loaded. */
(function () {
  "use strict";
  var PAUSE = 2000; // ms between two looks at the server
  var LATEST = 20000; // ms after which a page of something that goes on looks again, whatever it has heard
  var AGAIN = 3000; // ms between two looks for a service that has gone
  var SILENCE = 10000; // ms between two messages for screen readers
  var here = document.currentScript;
  var root = new URL(here.src).pathname.split("/static/")[0]; // behind a proxy the service may lie below a path
  var live = function () { return document.querySelector("[data-live]"); };
  var due = 0, last = 0, asking = false, said = 0, toSay = "";
  var fresh = new Date(), lost = false; // when the page was last known to be true; whether the service has gone
  var clocks = null; // seconds since it began and to go, and when that was so: in between, time goes on

  function clock(seconds) {
    if (seconds === null || seconds === undefined) { return "–"; }
    var whole = Math.round(seconds), two = function (n) { return String(n).padStart(2, "0"); };
    var hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
    return hours ? hours + ":" + two(minutes) + ":" + two(whole % 60) : minutes + ":" + two(whole % 60);
  }

  /* Whether tasks are counted, as of plug-in trainers. */
  function counted(p) { return p.tasks !== null && p.tasks !== undefined; }

  var TEXTS = {
    stage: function (p) { return p.stage; },
    known: function (p) { return p.known; },
    wanted: function (p) { return p.wanted; },
    headline: function (p) { return p.headline; },
    eta: function (p) { return clock(p.eta); },
    span: function (p) { return p.eta_low === null || p.eta_low === undefined ? "" : "(" + clock(p.eta_low) + " to " + clock(p.eta_high) + ")"; },
    seconds: function (p) { return clock(p.seconds); },
    tasks: function (p) { return counted(p) ? ", " + p.tasks + " of " + p.tasks_wanted + " tasks" : ""; },
    speed: function (p) { return p.speed === null ? "–" : counted(p) ? (60 * p.speed).toFixed(1) : Math.round(p.speed).toLocaleString("en-US"); },
    unit: function (p) { return counted(p) ? "tasks/min" : "steps/s"; }
  };

  /* Clocks of the study of this page, from the server or from its last event. */
  function begin(seconds, eta) { clocks = { seconds: seconds, eta: eta, at: Date.now() }; }

  function read() {
    var place = document.querySelector("section.progress [data-seconds]");
    if (!place) { clocks = null; return; }
    begin(Number(place.dataset.seconds), place.dataset.eta === "" ? null : Number(place.dataset.eta));
  }

  function tick() {
    var place = document.querySelector("section.progress");
    if (!clocks || !place || lost) { return; }
    var since = (Date.now() - clocks.at) / 1000;
    write(place.querySelector("[data-of=seconds]"), clock(clocks.seconds + since));
    if (clocks.eta !== null) { write(place.querySelector("[data-of=eta]"), clock(Math.max(0, clocks.eta - since))); }
  }

  /* Shows whether the service answers; buttons that need it are disabled until then. */
  function reached(answers) {
    if (answers) { fresh = new Date(); }
    if (lost === !answers) { return; }
    lost = !answers;
    var place = document.getElementById("gone");
    place.textContent = lost ? "Connection lost; the page is of " + fresh.toTimeString().slice(0, 8) + "." : "";
    place.hidden = !lost;
    document.querySelectorAll("form[method=post] button").forEach(function (button) { button.disabled = lost; });
    if (!lost) { later(); }
  }

  /* With the metric's name as a symbol, as the server writes it. */
  function write(place, text) {
    if (place.textContent === text.replace("A_T", "AT")) { return; }
    place.textContent = "";
    text.split(/(A_T)/).forEach(function (part) {
      if (part !== "A_T") { place.append(part); return; }
      var index = document.createElement("sub");
      index.textContent = "T";
      place.append("A", index);
    });
  }

  function progress(study, now) {
    document.querySelectorAll("[data-progress]").forEach(function (part) {
      if (part.dataset.progress !== study) { return; }
      part.querySelectorAll("[data-of]").forEach(function (one) {
        write(one, String(TEXTS[one.dataset.of](now)));
      });
      var bar = part.querySelector("progress");
      if (bar) { bar.max = now.wanted || 1; bar.value = now.known; }
    });
    if (live().dataset.study && !live().querySelector("section.progress")) { later(); }
    if (live().dataset.study) { begin(now.seconds, now.eta === undefined ? null : now.eta); }
    if (live().dataset.study) { toSay = now.stage + ": " + now.known + " of " + now.wanted + " members"; }
  }

  /* For screen readers: at most one message in SILENCE, and none twice. */
  function say() {
    var message = document.getElementById("message");
    if (message && toSay && toSay !== message.textContent && Date.now() - said >= SILENCE) {
      message.textContent = toSay;
      said = Date.now();
    }
  }

  function later() {
    if (!due) { due = Math.max(Date.now() + 150, last + PAUSE); }
  }

  function look() {
    var goesOn = live().querySelector(".state.running, .state.cancelling, .state.queued");
    if ((goesOn && Date.now() - last >= LATEST) || (lost && Date.now() - last >= AGAIN)) { later(); }
    if (!due || Date.now() < due || document.hidden || asking) { return; }
    due = 0;
    asking = true;
    htmx.ajax("GET", location.pathname + location.search, { target: "#live", select: "#live", swap: "outerMorph" })
      .catch(function () { reached(false); }) // the next look finds the service again, or does not
      .then(function () { asking = false; last = Date.now(); read(); document.dispatchEvent(new Event("fresh")); });
  }

  function hear(event) {
    var own = live().dataset.study;
    if (event.kind === "lost") { reached(false); return; }
    reached(true);
    if (event.kind !== "open" && own && event.study !== own) { return; }
    if (event.kind === "progress") { progress(event.study, event.data); return; }
    if (event.kind === "state" && own) { toSay = own + " is " + event.data.state; }
    later(); // also after the stream was opened again: something may have been missed
  }

  function listen() {
    if (window.SharedWorker) {
      var worker = new SharedWorker(here.dataset.stream);
      worker.port.onmessage = function (message) { hear(message.data); };
      window.addEventListener("pagehide", function () { worker.port.postMessage("bye"); });
      window.addEventListener("pageshow", function (event) { if (event.persisted) { location.reload(); } });
      return;
    }
    var source = null; // a stream of its own, while somebody looks
    function toggle() {
      if (document.hidden && source) { source.close(); source = null; }
      if (document.hidden || source) { return; }
      source = new EventSource(root + "/api/v1/events");
      here.dataset.kinds.split(",").forEach(function (kind) {
        source.addEventListener(kind, function (event) { hear(JSON.parse(event.data)); });
      });
      source.onopen = function () { hear({ kind: "open", study: "" }); };
      source.onerror = function () {
        hear({ kind: "lost", study: "" });
        if (source && source.readyState === 2) { source = null; setTimeout(toggle, AGAIN); }
      };
      later();
    }
    document.addEventListener("visibilitychange", toggle);
    toggle();
  }

  /* An answer that is no such page: somebody has signed out, or the study is gone. */
  document.addEventListener("htmx:before:swap", function (event) {
    var response = event.detail.ctx.response;
    if (event.detail.ctx.target && event.detail.ctx.target.id === "live" && (response.raw.redirected || response.status >= 400)) {
      event.preventDefault();
      if (response.status >= 500) { reached(false); }
      if (response.raw.redirected || response.status === 404) { location.reload(); }
    }
  });

  document.addEventListener("htmx:after:swap", function () { reached(true); });
  document.addEventListener("htmx:error", function () { reached(false); });

  if (live()) {
    last = Date.now();
    read();
    listen();
    setInterval(function () { look(); say(); tick(); }, 250);
    document.addEventListener("visibilitychange", look);
  }
})();
