/* One stream of events for all tabs: browsers open six connections to a host, and each stream takes one of them.

Runs as a shared worker. The stream reconnects by itself, and then says which event it knows last. */
"use strict";
var tabs = [], source = null;
var KINDS = ["begin", "plan", "note", "warning", "records", "state", "progress"];

function tell(event) {
  var one = JSON.parse(event.data);
  tabs.forEach(function (tab) { tab.postMessage(one); });
}

function open() {
  source = new EventSource("/api/v1/events");
  KINDS.forEach(function (kind) { source.addEventListener(kind, tell); });
  source.onopen = function () { tabs.forEach(function (tab) { tab.postMessage({ kind: "open", study: "" }); }); };
}

self.onconnect = function (event) {
  var tab = event.ports[0];
  tabs.push(tab);
  tab.onmessage = function () { tabs = tabs.filter(function (one) { return one !== tab; }); }; // it says good-bye
  if (!source || source.readyState === 2) { open(); } // closed for good, as after a sign-out
};
