/* One stream of events for all tabs: browsers open six connections to a host, and each stream takes one of them.

Runs as a shared worker. The stream reconnects by itself, and then says which event it knows last. */
"use strict";
var tabs = [], source = null;
var KINDS = new URL(self.location.href).searchParams.get("kinds").split(","); // of all events

var lost = false; // whether the service has gone

function all(message) {
  tabs.forEach(function (tab) { tab.postMessage(message); });
}

function tell(event) {
  all(JSON.parse(event.data));
}

function open() {
  source = new EventSource(self.location.pathname.split("/static/")[0] + "/api/v1/events");
  KINDS.forEach(function (kind) { source.addEventListener(kind, tell); });
  source.onopen = function () { lost = false; all({ kind: "open", study: "" }); };
  source.onerror = function () {
    lost = true;
    all({ kind: "lost", study: "" });
    // Closed for good, as by a service that answers with an error: it is tried again while somebody looks.
    if (source.readyState === 2 && tabs.length) { setTimeout(again, 5000); }
  };
}

function again() {
  if (source.readyState === 2 && tabs.length) { open(); }
}

self.onconnect = function (event) {
  var tab = event.ports[0];
  tabs.push(tab);
  tab.onmessage = function () { tabs = tabs.filter(function (one) { return one !== tab; }); }; // it says good-bye
  if (!source || source.readyState === 2) { open(); } // closed for good, as after a sign-out
  if (lost) { tab.postMessage({ kind: "lost", study: "" }); }
};
