// What the theme leaves to readers with a keyboard or a screen reader: tables that go on at a side can be scrolled, and
// the toolbar of each block of code and the search have names of their own.
function name() {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    table.tabIndex = 0;
  }
  document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((bar) => {
    bar.setAttribute("aria-label", `Code ${document.querySelectorAll("nav.md-code__nav[aria-label]").length + 1}`);
  });
  document.querySelector(".md-search:not([aria-label])")?.setAttribute("aria-label", "Search");
}

new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true });
name();
