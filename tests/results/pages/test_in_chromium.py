"""Every kind of page in a browser: light and dark, wide and narrow, without a pointer, without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from results.html.page import MOST_WORDS
from results.pages.comparison import write_comparison
from results.pages.memory import write_memory_study
from results.pages.protocols import write_protocols
from results.pages.search.report import write_report
from results.pages.side_by_side import write_strategies
from results.verdict.summary import summary
from tests.results.verdict.test_inert import SEARCHES
from tests.support import chromium
from tests.support.synthetic import study
from tests.support.synthetic_methods import comparison, memory_study
from tests.support.synthetic_points import learning_rates, mixed
from tests.support.synthetic_protocols import protocols

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(chromium.program() is None, reason="no Chromium is installed"),
]
WRITERS = {
    "search": lambda folder: write_report(study(repeats=4, points=6, seeds=3), folder),
    "search over several": lambda folder: write_report(mixed(), folder),
    "comparison": lambda folder: write_comparison(comparison(), folder),
    "protocols": lambda folder: write_protocols(protocols(), folder),
    "memory study": lambda folder: write_memory_study(memory_study(), folder),
    "side by side": lambda folder: write_strategies(
        [replace(learning_rates(), name="first"), replace(learning_rates(strategy="random"), name="second")], folder
    ),
}
STATES = {
    "evaluated": lambda: study(repeats=5),
    "not evaluated": lambda: study(repeats=1, points=7, seeds=1, tasks=2, evaluated=False, diverged=(0.5,)),
    "several": mixed,
    "on the evaluation stream": lambda: study(repeats=2, score_on="eval", tasks=5),
    "diverged": lambda: study(repeats=2, points=5, seeds=3, diverged=(0.25, 0.5, 0.75)),
    "inert": lambda: SEARCHES["one number"](),
}
"""Kinds of answers that a report begins with."""
WIDE, NARROW = chromium.WIDE, chromium.NARROW
WRONGLY_SHADED = """async () => {
  const tables = [...document.querySelectorAll(".scroll")];
  const wrong = (side, goes_on) => tables.filter(one => one.classList.contains(side) !== goes_on(one)).length;
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  await new Promise(done => setTimeout(done, 100));
  const before = wrong("right", one => one.scrollWidth > one.clientWidth + 1);
  tables.forEach(one => { one.scrollLeft = 1e6; });
  await new Promise(done => setTimeout(done, 100));
  return before + wrong("left", one => one.scrollWidth > one.clientWidth + 1) + wrong("right", () => false);
}"""
"""Tables that go on at a side and do not show it, or the other way round: as they are, and at their right end."""
LEAST_PANEL = 150  # pixels across, on a page of 390 with the names of methods beside the panel


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: write(tmp_path_factory.mktemp("page")) for kind, write in WRITERS.items()}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.browser() as one:
        yield one


def opened(browser: Any, path: Path, width: int = WIDE, scheme: str = "light", scripts: bool = True) -> Any:
    """The page, drawn; what it told the console and asked for is in its `said` and `asked`."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    page = context.new_page()
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(path.as_uri())
    if scripts:
        drawn(page)
    return page


def drawn(page: Any) -> None:
    """Waits until every figure is drawn that lies in no closed part of the page."""
    page.wait_for_function("""() => [...document.querySelectorAll('.plot')].every(one =>
        one.closest('details:not([open])') || one.querySelector('.main-svg[aria-hidden]'))""")


def unfolded(page: Any) -> None:
    """Opens every part of a page by its summary, as a reader without JavaScript does, the outer ones first."""
    closed = page.locator("details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()


@pytest.mark.few(4)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("kind", WRITERS)
def test_nothing_stands_in_a_readers_way(
    pages: dict[str, Path], browser: Any, kind: str, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(browser, pages[kind], width, scheme)
    assert page.locator(".plot").count() >= 1
    assert page.evaluate(WRONGLY_SHADED) == 0
    violations = Axe().run(page).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in violations] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.said == [] and page.asked == [pages[kind].as_uri()]
    page.context.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", WRITERS)
def test_a_dark_scheme_is_dark(pages: dict[str, Path], browser: Any, kind: str) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.plot .xtick text, .plot .ytick text')).fill"
    light, dark = (opened(browser, pages[kind], scheme=scheme) for scheme in ("light", "dark"))
    assert brightness(light.evaluate(ground)) > 0.9 > 0.2 > brightness(dark.evaluate(ground))
    assert brightness(light.evaluate(ink)) < 0.2 < 0.8 < brightness(dark.evaluate(ink))
    # The figures follow a scheme that changes while the page is open, as at sunset.
    light.emulate_media(color_scheme="dark")
    light.wait_for_function(f"{ink} == '{dark.evaluate(ink)}'")
    light.context.close()
    dark.context.close()


def brightness(colour: str) -> float:
    """The mean of the channels of "rgb(26, 26, 26)" on a scale of 1."""
    return sum(map(float, colour.split("(")[1].rstrip(")").split(",")[:3])) / 3 / 255


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", WRITERS)
def test_panels_are_legible_on_a_narrow_page(pages: dict[str, Path], browser: Any, kind: str) -> None:
    page = opened(browser, pages[kind], NARROW)
    panels = page.evaluate("""[...document.querySelectorAll('.plot .draglayer .nsewdrag')].map(p => {
        const box = p.getBoundingClientRect(); return [box.left, box.width];})""")
    assert panels and all(left >= 0 and width >= LEAST_PANEL and left + width <= NARROW for left, width in panels)
    legends = page.evaluate("""[...document.querySelectorAll('.plot')].map(p => {
        const legend = p.querySelector('.legend .bg'), panel = p.querySelector('.draglayer .nsewdrag');
        return legend ? panel.getBoundingClientRect().top - legend.getBoundingClientRect().bottom : 0;})""")
    assert min(legends) >= -2  # above the panels, not on them
    page.context.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", WRITERS)
def test_without_javascript_a_figure_is_its_data_table(pages: dict[str, Path], browser: Any, kind: str) -> None:
    page = opened(browser, pages[kind], scripts=False)
    unfolded(page)
    for i in range(page.locator("figure").count()):
        figure = page.locator("figure").nth(i)
        assert not figure.locator("> .plot").is_visible()
        assert figure.locator("details table").first.is_visible()
    page.context.close()


def test_figures_have_short_names_and_folded_data(pages: dict[str, Path], browser: Any) -> None:
    page = opened(browser, pages["search"])
    unfolded(page)
    drawn(page)
    figures = page.locator("figure")
    names = [figures.nth(i).get_attribute("aria-label") for i in range(figures.count())]
    captions = [figures.nth(i).locator("> figcaption").inner_text() for i in range(figures.count())]
    assert all(0 < len(name) <= 100 for name in names)
    assert all(3 < len(text.split()) <= MOST_WORDS for text in captions), captions
    assert len(set(names)) == len(names)
    page.context.close()
    page = opened(browser, pages["search"])
    figures = page.locator("figure")
    data = figures.first.locator("> .folds > details.data")
    assert data.get_attribute("open") is None and not data.locator("table").first.is_visible()
    data.locator("summary").focus()
    page.keyboard.press("Enter")
    assert data.locator("table").first.is_visible()
    page.context.close()


def test_what_was_copied_is_announced(pages: dict[str, Path], browser: Any) -> None:
    page = opened(browser, pages["search"])
    box = page.locator(".code:has(#methods-paragraph)")
    assert box.locator("[role=status]").inner_text() == ""
    box.locator("button[data-copy]").focus()
    page.keyboard.press("Enter")
    assert box.locator("[role=status]").inner_text() == "Copied to the clipboard"
    assert box.locator("button[data-copy]").inner_text() == "Copied"
    page.context.close()


@pytest.mark.few(2)
@pytest.mark.parametrize("state", STATES)
def test_the_first_screen_has_answer_figure_and_next_step(state: str, browser: Any, tmp_path: Path) -> None:
    results = STATES[state]()
    context = browser.new_context(viewport={"width": WIDE, "height": 800})
    page = context.new_page()
    page.goto(write_report(results, tmp_path).as_uri())
    drawn(page)

    def bottom(place: str) -> float:
        box = page.locator(place).first.bounding_box()
        assert box is not None
        return float(box["y"] + box["height"])

    chosen = summary(results).answer.partition("   (")[0].partition(": ")[0]
    assert page.inner_text(".summary .value").replace("\N{NO-BREAK SPACE}", " ") == chosen
    assert bottom(".summary .tile") <= 320 and bottom(".summary") <= 800
    assert bottom(".first .plot") <= 800 and bottom(".first .next") <= 800
    words = [word for word in page.inner_text(".summary").split() if re.search(r"[^\W\d]", word)]
    assert len(words) <= 60, (len(words), words)
    assert page.evaluate("document.documentElement.scrollHeight") <= 4500
    context.close()


def test_a_figure_is_saved_by_keyboard(pages: dict[str, Path], browser: Any, tmp_path: Path) -> None:
    page = opened(browser, pages["search"], scheme="dark")
    first = page.locator("figure").first
    for kind in ("svg", "png", "csv"):
        first.locator(f"> .folds > .save button[data-save={kind}]").focus()
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.name == f"epsilon_A_T.{kind}"
    svg = (tmp_path / "epsilon_A_T.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg") and "rgb(26, 26, 26)" in svg, "the colours are those of a light page"
    assert (tmp_path / "epsilon_A_T.png").read_bytes().startswith(b"\x89PNG")
    file = pages["search"].parent / "figures" / "epsilon_A_T.csv"
    assert (tmp_path / "epsilon_A_T.csv").read_bytes() == file.read_bytes()
    assert page.said == [] and page.asked[0] == pages["search"].as_uri()
    assert all(url.startswith("data:") for url in page.asked[1:]), page.asked
    page.context.close()


def test_a_long_table_is_saved_whole(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    page = opened(browser, write_report(study(repeats=5), folder))
    first = page.locator("figure").first
    data = first.locator("> .folds > details.data")
    data.locator("summary").click()
    assert "The first 200 of" in data.inner_text()
    with page.expect_download() as download:
        first.locator("button[data-table=epsilon_A_T_seeds]").click()
    download.value.save_as(tmp_path / "saved.csv")
    assert (tmp_path / "saved.csv").read_bytes() == (folder / "figures" / "epsilon_A_T_seeds.csv").read_bytes()
    page.context.close()


def test_on_paper_every_part_is_open_but_the_data(pages: dict[str, Path], browser: Any, tmp_path: Path) -> None:
    page = opened(browser, pages["search"])
    before = page.locator("details[open]:not(.data)").count()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not(.data):not([open])").count() == 0
    assert page.locator("details.data[open]").count() == 0
    drawn(page)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]:not(.data)").count() == before
    page.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 50_000
    page.context.close()


def test_a_browser_that_cannot_unpack_shows_the_data(pages: dict[str, Path], browser: Any, tmp_path: Path) -> None:
    old = tmp_path / "old.html"
    html = (
        pages["search"].read_text("utf-8").replace("<head>", "<head><script>delete window.DecompressionStream</script>")
    )
    old.write_text(html, "utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(old.as_uri())
    page.wait_for_selector("html.undrawn", state="attached")
    assert page.locator("figure details table").first.is_visible() and not page.locator(".plot").first.is_visible()
    context.close()
