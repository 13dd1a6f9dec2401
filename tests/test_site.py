"""The site: trails that are short and lead on, pages that load nothing from other hosts, and that everyone can use."""

import functools
import gzip
import http.server
import os
import re
import subprocess
import threading
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

import epsearch
from tests.support import chromium
from tests.support.limits import HANGS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NAVIGATION = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
TRAILS = ("Researcher", "Lab", "Contributor")
MOST_WORDS, MOST_LINES, MOST_BYTES = 12_000, 90, 300_000
WIDE = chromium.WIDE
VISITED = ("", "verdict/", "service/", "clusters/", "tour/", "commands/", "python-api/", "comparison/")


def parts():
    """Part of the navigation -> its pages."""
    return {
        title: [each] if isinstance(each, str) else [page for one in each for page in one.values()]
        for entry in NAVIGATION
        for title, each in entry.items()
    }


TRAIL_PAGES = [page for name in TRAILS for page in parts()[name]]
PAGES = sorted(page.name for page in DOCS.glob("*.md"))


def paragraphs(page):
    """What stands between empty lines, without blocks of code."""
    text = re.sub(r"^```.*?^```$", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [part for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def test_every_page_is_in_the_navigation_once():
    listed = [page for pages in parts().values() for page in pages]
    assert sorted(listed) == sorted([*PAGES, "index.md"])


def test_the_trails_are_short():
    words = sum(len((DOCS / page).read_text(encoding="utf-8").split()) for page in TRAIL_PAGES)
    assert words <= MOST_WORDS


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_what_it_is_for_and_ends_with_where_to_go_next(page):
    heading, first, *_ = paragraphs(page)
    assert heading.startswith("# ") and not first.startswith(("#", "|", "!", "*", "-"))
    assert re.match(r"Next: .*\]\([\w-]+\.md", paragraphs(page)[-1], flags=re.DOTALL)


def test_the_python_api_has_every_name():
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    described = re.findall(r"^::: ([\w.]+)$", text, flags=re.MULTILINE)
    assert sorted(path.rpartition(".")[2] for path in described) == epsearch.__all__ == dir(epsearch)
    assert [path for path in described if path.rpartition(".")[0] not in epsearch._HOMES] == []


def test_ci_builds_the_site():
    assert "uv run --group docs mkdocs build --strict" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site. A page or link that is missing, or a warning of any kind, fails."""
    folder = tmp_path_factory.mktemp("site") / "site"
    # In an environment of its own: that of the tests is in use.
    command = ["uv", "run", "--isolated", "--only-group", "docs", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run([*command, "--site-dir", folder], cwd=ROOT, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loaded(HTMLParser):
    """Addresses from which a page loads something when it is opened."""

    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(values.get("href"))
        elif tag not in ("a", "link"):
            self.addresses += [values.get(name) for name in ("src", "srcset", "poster", "data") if values.get(name)]
        self.addresses += re.findall(r"url\(([^)]+)\)", values.get("style") or "")


def elsewhere(addresses):
    return [one for one in addresses if one and urlsplit(one.strip("\"' ")).netloc]


@pytest.mark.install
def test_no_page_loads_anything_from_another_host(site):
    pages, sheets = list(site.rglob("*.html")), list(site.rglob("*.css"))
    assert len(pages) > len(PAGES) and sheets
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert elsewhere(Loaded(text).addresses) == [], page
        assert 'class="mermaid"' not in text, "the theme's script would load mermaid from another host"
    for sheet in sheets:
        pairs = re.findall(r"url\(([^)]+)\)|@import\s+[\"']([^\"']+)", sheet.read_text(encoding="utf-8"))
        assert elsewhere(one for pair in pairs for one in pair) == [], sheet


@pytest.mark.install
def test_the_first_page_is_small(site):
    """All that it loads but the index of the search, which is fetched when somebody searches."""
    page = site / "index.html"
    text = page.read_text(encoding="utf-8")
    local = {one.partition("?")[0] for one in Loaded(text).addresses if one and not one.startswith("data:")}
    files = [page, *(site / one for one in local if (site / one).is_file())]
    assert len(files) > 5
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < MOST_BYTES


@pytest.mark.install
def test_every_picture_is_there(site):
    for page in site.rglob("*.html"):
        for address in Loaded(page.read_text(encoding="utf-8")).addresses:
            path = urlsplit(address or "").path
            if path and not (address or "").startswith("data:") and page.name != "404.html":
                assert (page.parent / path).exists(), f"{page.relative_to(site)}: {address}"


@contextmanager
def serving(folder):
    """The address of a server of the folder."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Silent, directory=os.fspath(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def url(site):
    with serving(site) as address:
        yield address


@pytest.fixture(scope="module")
def chrome():
    if chromium.program() is None:
        pytest.skip("no Chromium is installed")
    with chromium.browser() as one:
        yield one


@pytest.mark.install
@chromium.widths_and_schemes
def test_nothing_stands_in_a_readers_way(url, chrome, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    context = chrome.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(1000 * HANGS)
    asked, said = [], []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text))
    try:
        page = context.new_page()
        for path in VISITED:
            page.goto(f"{url}/{path}", wait_until="load")
            page.wait_for_function("document.querySelector('.md-search[aria-label]')")
            violations = Axe().run(page).response["violations"]
            assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in violations] == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    finally:
        context.close()
    assert said == []
    assert {urlsplit(one).netloc for one in asked if not one.startswith(("data:", "blob:"))} == {urlsplit(url).netloc}


@pytest.mark.install
def test_the_search_finds_what_readers_ask(url, chrome):
    context = chrome.new_context(viewport={"width": WIDE, "height": 900})
    context.set_default_timeout(1000 * HANGS)
    try:
        page = context.new_page()
        for words, target in (("Slurm", "clusters/"), ("own method", "own-method/"), ("backup", "production/")):
            page.goto(f"{url}/")
            page.click(".md-search__input")
            page.keyboard.type(words)
            page.wait_for_selector(f".md-search-result__link[href*='{target}']", state="attached")
    finally:
        context.close()
