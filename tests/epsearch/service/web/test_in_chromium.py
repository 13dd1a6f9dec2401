"""The pages in a browser: studies submitted, watched, cancelled, extended, compared; live, in reach of everybody."""

import os
import re
import time
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx
import pytest

from epsearch.service.access.tokens import Token, Tokens, digest
from epsearch.service.settings import Settings
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.epsearch.conftest import SMALL
from tests.epsearch.service.web.conftest import serving
from tests.support import chromium, service
from tests.support.ledgers import NAME
from tests.support.limits import HANGS

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(chromium.program() is None, reason="no Chromium is installed"),
]
WIDE, NARROW = chromium.WIDE, chromium.NARROW
TINY = SMALL | {"points": 3, "dataset": "permuted_digits"}
LONG = TINY | {"points": 40, "seeds": 9, "examples_per_task": 1000}
FIRST = "[id='figure-epsilon_A_T']"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A service that trains, with two finished searches and a comparison."""
    out = tmp_path_factory.mktemp("runs")
    settings = Settings(LedgerUrl(f"sqlite:///{out / 'epsearch.sqlite'}"), out, out / "data", parallel=2)
    with patch.dict(os.environ, {"EPSEARCH_CACHE": str(out / "cache")}), serving(settings, works=True) as url:
        given = {name: one for name, one in TINY.items() if name not in ("points", "repeats")}
        post(url, "studies", TINY | {"name": "narrowed"})
        post(url, "studies", TINY | {"name": "random", "strategy": "random"})
        post(url, "studies", given | {"name": "table", "kind": "compare", "methods": ["van", "er", "agem"]})
        for name in ("narrowed", "random", "table"):
            ended(url, name)
        yield url


@pytest.fixture(scope="module")
def chrome():
    with chromium.browser() as one:
        yield one


@pytest.fixture
def visitor(chrome, url):
    """Opens pages in contexts of their own; none may say anything to the console, or ask another host."""
    contexts, said, asked = [], [], []

    def enter(width=WIDE, scheme="light", scripts=True):
        context = chrome.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts, base_url=url
        )
        context.set_default_timeout(1000 * HANGS)
        context.on("console", lambda message: said.append(message.text))
        context.on("weberror", lambda error: said.append(str(error.error)))
        context.on("request", lambda request: asked.append(request.url))
        contexts.append(context)
        return context

    yield enter
    for context in contexts:
        context.close()
    assert said == []
    assert {urlsplit(one).netloc for one in asked if not one.startswith(("data:", "blob:"))} == {urlsplit(url).netloc}


def post(url, path, given):
    answer = httpx.post(f"{url}/api/v1/{path}", json=given, timeout=HANGS)
    assert answer.status_code in (200, 201), answer.text


def ended(url, name, wanted="finished"):
    """Waits for the end of a study."""
    while (state := httpx.get(f"{url}/api/v1/studies/{name}", timeout=HANGS).json()["state"]) in (
        *("queued", "running", "cancelling"),
    ):
        time.sleep(0.1)
    assert state == wanted


def becomes(page, state):
    """Waits until a page says so by itself."""
    page.wait_for_selector(f"#live[data-state={state}]")


def until(page, expression, *values):
    """Waits for JavaScript to be true, asked from outside: Playwright's own way evals, which our pages forbid."""
    while not page.evaluate(expression, *values):
        page.wait_for_timeout(50)


def drawn(page):
    """Waits for all figures that are not folded."""
    folded, done = "closest('details.part:not([open])')", "querySelector('.main-svg[aria-hidden]')"
    until(page, f"() => [...document.querySelectorAll('.plot')].every(one => one.{folded} || one.{done})")


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")


def cancel(page):
    """Cancels the study of a page, which asks first."""
    page.click("a.button:text('Cancel')")
    page.click("button:text('Cancel')")


def fill(page, given):
    unfold(page)
    for name, value in given.items():
        field = page.locator(f"[name={name}]")
        if field.evaluate("one => one.tagName") == "SELECT":
            field.select_option(str(value))
        else:
            field.fill(str(value))


def test_a_study_is_planned_submitted_watched_to_its_end_and_reported(visitor):
    page = visitor().new_page()
    page.goto("/")
    page.click("text=New study >> nth=0")
    fill(page, TINY | {"name": "mine", "seeds": 3})
    page.click("button:text('Plan')")
    page.wait_for_selector("#answer dl")
    plan = page.inner_text("#answer")
    assert re.search(r"at most \d+ to train", plan) and "3 seeds cannot reach p < 0.05" in plan and "time" in plan
    assert page.evaluate("document.activeElement.id") == "answer"  # what was asked for is in sight
    assert page.input_value("[name=seeds]") == "3" and page.input_value("[name=runner]") == "local"
    page.click("button:text('Submit')")
    page.wait_for_url("**/studies/mine")
    page.evaluate("window.loaded = 1")
    becomes(page, "finished")
    drawn(page)
    assert page.evaluate("window.loaded") == 1  # it was never loaded again
    assert page.locator("section.progress").count() == 0
    assert page.locator("#table-runs tbody tr").count() >= 4
    assert page.inner_text(".tile.main .value").strip()
    assert page.locator(".banner .label").count() == 1
    page.click("a:text('Report')")
    drawn(page)
    assert "mine" in page.inner_text("header")


def test_a_study_is_cancelled_and_resumed(visitor, url):
    post(url, "studies", LONG | {"name": "long"})
    page = visitor().new_page()
    page.goto("/studies/long")
    becomes(page, "running")
    page.evaluate("window.loaded = 1")
    until(page, "Number(document.querySelector('[data-of=known]')?.textContent) > 0")
    page.wait_for_selector(f"{FIRST} .main-svg")  # a curve of what is there so far
    assert "no verdict can stand on it yet" in page.inner_text("#live")
    assert page.evaluate("window.loaded") == 1
    assert "leading" in page.inner_text(FIRST) and "chosen" not in page.inner_text(FIRST)
    cancel(page)
    becomes(page, "cancelled")
    page.click("button:text('Resume')")
    becomes(page, "running")
    cancel(page)
    becomes(page, "cancelled")
    assert page.locator("a.button:text('Cancel')").count() == 0


def test_a_study_grows_and_an_open_page_keeps_its_zoom_and_its_tables(visitor, url):
    context = visitor()
    page, form = context.new_page(), context.new_page()
    page.goto("/studies/narrowed")
    drawn(page)
    shown = 'JSON.stringify(document.querySelector("' + FIRST + '")._fullLayout.xaxis.range)'
    whole = page.evaluate(shown)
    page.locator(FIRST).scroll_into_view_if_needed()
    box = page.locator(f"{FIRST} .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.7, steps=5)
    page.mouse.up()
    until(page, f"{shown} !== '{whole}'")
    page.wait_for_timeout(500)  # the zoom is animated
    zoomed = page.evaluate(shown)
    page.click("#part-runs > summary")
    page.click("summary:text('Every member')")
    page.locator("#table-members thead button").nth(2).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.fill("[aria-label='Filter the members']", "evaluation")
    before = page.evaluate(f'document.querySelector("{FIRST}").drawn')

    form.goto("/studies/narrowed/change")
    form.fill("[name=seeds]", "0,1,2")
    form.click("button:text('Extend')")
    becomes(form, "finished")
    until(page, f'before => document.querySelector("{FIRST}").drawn !== before', before)
    becomes(page, "finished")
    seeds = page.locator("#table-runs tbody tr:first-child td").nth(5)
    assert seeds.inner_text() == "3"
    assert page.evaluate(shown) == zoomed
    assert page.locator("#members").get_attribute("open") is not None
    rows = page.locator("#table-members tbody tr:visible")
    assert 0 < rows.count() < page.locator("#table-members tbody tr").count()
    order = [int(rows.nth(i).locator("td").nth(1).inner_text()) for i in range(rows.count())]
    assert order == sorted(order, reverse=True) and set(order) == {0, 1, 2}
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Filter the members"


def test_two_are_chosen_on_the_list_and_compared(visitor):
    page = visitor().new_page()
    page.goto("/")
    page.check("[aria-label='Compare narrowed']")
    page.check("[aria-label='Compare random']")
    page.click("button:text('Compare')")
    drawn(page)
    assert sorted(re.findall(r"study=(\w+)", page.url)) == ["narrowed", "random"]
    assert page.locator("table.sheet tbody tr").count() == 2 and page.locator(".plot").count() == 2


def test_without_scripts_studies_are_submitted_and_read(visitor, url):
    page = visitor(scripts=False).new_page()
    page.goto("/new")
    folded = page.locator("details.group:not([open]) > summary")
    while folded.count():
        folded.first.click()
    for name, value in (TINY | {"name": "plain"}).items():
        field = page.locator(f"[name={name}]")
        field.select_option(value) if name in ("runner", "device") else field.fill(str(value))
    page.click("button:text('Submit')")
    page.wait_for_url("**/studies/plain")
    ended(url, "plain")
    page.reload()
    assert page.locator("h1 .state").inner_text() == "finished"
    assert not page.locator(".plot").first.is_visible() and page.locator("details.data table").first.is_visible()
    assert page.locator("#table-runs tbody tr").count() >= 4
    page.goto("/?search=plain")
    assert page.locator("table.studies tbody tr").count() == 1
    page.goto("/?sort=name")
    page.check("[aria-label='Compare narrowed']")
    page.check("[aria-label='Compare plain']")
    page.click("button:text('Compare')")
    assert page.locator("table.sheet tbody tr").count() == 2


def test_eight_tabs_stay_live(visitor, url):
    context = visitor()
    tabs = [context.new_page() for _ in range(8)]
    for tab in tabs:
        tab.goto("/?search=eight")
        tab.evaluate("window.loaded = 1")
    post(url, "studies", TINY | {"name": "eight"})
    for tab in tabs:
        tab.wait_for_selector("#study-eight .state.finished")
        assert tab.evaluate("window.loaded") == 1
    metrics = httpx.get(f"{url}/metrics", timeout=HANGS).text
    assert "epsearch_open_streams 1.0" in metrics


def test_a_page_says_that_the_service_has_gone_and_finds_it_again(chrome, tmp_path):
    """On the same port, as a service is started again."""
    settings = Settings(LedgerUrl(f"sqlite:///{tmp_path / 'epsearch.sqlite'}"), tmp_path, tmp_path / "data")
    context = chrome.new_context(viewport={"width": NARROW, "height": 900})
    context.set_default_timeout(1000 * HANGS)
    try:
        with serving(settings) as url:
            post(url, "studies", TINY | {"name": "waits"})
            post(url, "studies/waits/cancel", {})
            page = context.new_page()
            page.goto(f"{url}/studies/waits")
            assert not page.locator("#gone").is_visible() and page.locator("button:text('Resume')").is_enabled()
        page.wait_for_selector("#gone:not([hidden])")
        assert re.fullmatch(r"Connection lost; the page is of \d\d:\d\d:\d\d\.", page.inner_text("#gone"))
        assert page.locator("button:text('Resume')").is_disabled()
        with serving(settings, port=urlsplit(url).port):
            page.wait_for_selector("#gone", state="hidden")
            assert page.locator("button:text('Resume')").is_enabled()
            page.click("button:text('Resume')")
            becomes(page, "queued")
    finally:
        context.close()


def test_time_goes_on_between_two_reports(visitor, url):
    post(url, "studies", LONG | {"name": "ticks"})
    page = visitor().new_page()
    page.goto("/studies/ticks")
    page.wait_for_selector("section.progress")
    page.evaluate("document.querySelector('section.progress').dataset.progress = 'nobody'")  # no report comes through
    shown = "document.querySelector('[data-of=seconds]').textContent"
    first = page.evaluate(shown)
    until(page, f"{shown} !== '{first}'")
    cancel(page)
    ended(url, "ticks", "cancelled")


def test_a_box_that_goes_on_shows_it(visitor):
    page = visitor().new_page()
    page.goto("/studies/table")
    page.click("#part-runs > summary")
    page.click("summary:text('Every member')")
    # A rule and a scroll that are there again where fresh rows have replaced the box.
    page.add_style_tag(content="#table-members { max-height: 60px !important; }")
    until(page, "document.querySelector('#table-members').matches('.below:not(.above)')")
    scrolled = "one => { one.scrollTop = one.scrollHeight; return one.matches('.above:not(.below)'); }"
    until(page, f"({scrolled})(document.querySelector('#table-members'))")


def test_typed_values_stay_when_the_kind_changes_and_enter_does_not_change_it(chrome, url):
    context = chrome.new_context(base_url=url)  # its console tells of the form that is refused
    context.set_default_timeout(1000 * HANGS)
    try:
        page = context.new_page()
        page.goto("/new")
        page.fill("[name=name]", "kept")
        page.click(".tabs button:text('comparison')")
        page.wait_for_url("**/new?kind=compare&name=kept")
        assert page.input_value("[name=name]") == "kept"
        page.fill("[name=seeds]", "nothing")
        page.press("[name=seeds]", "Enter")
        page.wait_for_selector("[role=alert]")
        assert page.locator("[name=kind]").input_value() == "compare"
        assert page.evaluate("document.activeElement.getAttribute('role')") == "alert"
        page.click("[role=alert] a")
        assert page.evaluate("document.activeElement.name") == "seeds"
    finally:
        context.close()


def test_a_report_leads_back_also_for_somebody_who_has_signed_in(chrome, tmp_path):
    tokens = Tokens((Token("ann", "write", digest("a-secret-of-ann-it-is")),))
    settings = service.with_a_finished_study(tmp_path / "runs", tokens=tokens)
    context = chrome.new_context()
    context.set_default_timeout(1000 * HANGS)
    try:
        with serving(settings) as url:
            page = context.new_page()
            page.goto(f"{url}/studies/{NAME}/report")
            page.fill("#token", "a-secret-of-ann-it-is")
            page.click("button:text('Sign in')")
            page.wait_for_url(f"**/studies/{NAME}/report")
            page.click("nav[aria-label=Service] a")
            page.wait_for_url(f"**/studies/{NAME}")
            assert page.locator("h1 .state").inner_text() == "finished"
    finally:
        context.close()


PAGES = (
    *("/help", "/api/v1"),
    *("/", "/studies/narrowed", "/studies/table", "/studies/narrowed/change", "/new", "/new?kind=compare"),
    *(
        "/new?kind=memory",
        "/new?kind=protocols",
        "/compare",
        "/compare?study=narrowed&study=random",
        "/ledger",
        "/changes",
        "/sign-in",
    ),
    "/studies/narrowed/report",
)


@pytest.mark.few(8)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_stands_in_a_readers_way(visitor, path, width, scheme):
    page = visitor(width, scheme).new_page()
    page.goto(path)
    unfold(page)
    if page.locator(".plot").count():
        drawn(page)
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def barriers(page):
    """What stands in a reader's way, by the rules of axe."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in violations]


@chromium.widths_and_schemes
def test_nothing_stands_in_the_way_of_owners(chrome, tmp_path, width, scheme):
    """The pages of a service with tokens: people, labels, the question before a cancel, a failure with its output."""
    tokens = Tokens(
        (Token("root", "admin", digest("a-secret-of-root-it-is")), Token("ann", "write", digest("another")))
    )
    settings = service.settings(tmp_path / "runs", tokens=tokens, notify_hosts=("chat.example",))
    context = chrome.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(1000 * HANGS)
    try:
        with serving(settings) as url:
            page = context.new_page()
            page.goto(f"{url}/sign-in")
            page.fill("#token", "a-secret-of-root-it-is")
            page.press("#token", "Enter")
            page.wait_for_url(f"{url}/")
            own = {"Authorization": "Bearer a-secret-of-root-it-is"}
            for name in ("waits", "fails"):
                httpx.post(f"{url}/api/v1/studies", json=TINY | {"name": name}, headers=own, timeout=HANGS)
            labels = {"tags": ["paper", "fig.3"], "notes": "first line\nsecond line"}
            httpx.put(f"{url}/api/v1/studies/waits/labels", json=labels, headers=own, timeout=HANGS)
            with Store.open(settings.storage) as store:
                store.queue.fail("fails", "it was refused")
            (settings.out / "fails").mkdir(exist_ok=True)
            (settings.out / "fails" / "service.log").write_text("Traceback (most recent call last):\n" + "x" * 300)
            paths = ("/", "/people", "/people/root", "/studies/waits", "/studies/waits/cancel", "/studies/waits/change")
            for path in (*paths, "/studies/fails", "/new", "/changes"):
                page.goto(f"{url}{path}")
                unfold(page)
                assert barriers(page) == [], path
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    finally:
        context.close()


def tab_to(page, found):
    """Presses Tab until an element has the focus; found: what holds for it, in JavaScript about `one`."""
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate(f"(one => {found})(document.activeElement)"):
            return
    raise AssertionError(f"Tab leads to no element with {found}")


def test_a_study_is_submitted_watched_and_compared_by_keyboard_alone(visitor):
    page = visitor().new_page()
    page.goto("/studies/narrowed")
    tab_to(page, "one.textContent === 'New study from these options'")
    page.keyboard.press("Enter")
    page.wait_for_url("**/new?*")
    tab_to(page, "one.name === 'name'")
    page.keyboard.type("typed")
    tab_to(page, "one.tagName === 'BUTTON' && one.textContent === 'Submit'")
    page.keyboard.press("Enter")
    page.wait_for_url("**/studies/typed")
    becomes(page, "finished")
    page.goto("/")
    for name in ("narrowed", "typed"):
        page.evaluate("document.activeElement.blur()")
        tab_to(page, f"one.getAttribute('aria-label') === 'Compare {name}'")
        page.keyboard.press("Space")
    tab_to(page, "one.tagName === 'BUTTON' && one.textContent === 'Compare'")
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?*")
    drawn(page)
    assert page.locator("table.sheet tbody tr").count() == 2


def test_a_page_is_used_by_keyboard_alone(visitor):
    page = visitor().new_page()
    page.goto("/studies/narrowed")
    drawn(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim().split('\\n')[0]"))
    assert {"Studies", "Report", "Label, extend or delete", "Data"} <= reached
    for name in ("Runs", "More figures", "Log", "Configuration"):
        assert any(one.startswith(name) for one in reached), name
