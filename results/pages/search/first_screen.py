"""The first screen of a report: the answer in a few lines beside the figure, and the next step."""

from results.html import page
from results.pages.search import confidence, sections
from results.search import SearchResults
from results.verdict.assessment import trust
from results.verdict.summary import Summary, summary

LONG = 24
"""Letters from which on a chosen point has smaller letters."""
NEXT = "next-step"
"""Id of the command that the button copies."""


def first_screen(results: SearchResults, figure: str) -> str:
    """Returns the summary beside the figure of the search, as HTML."""
    return f'<div class="first">{_summary(results, steps=True)}\n{figure}</div>'


def in_full(results: SearchResults) -> str:
    """Returns the section with headline numbers and the answer in words, which unfolds."""
    return page.section("The answer in full", sections.answer_in_full(results), unfolds=True)


def overview(results: SearchResults) -> str:
    """Returns summary, warnings, verdict and answer, for a page that shows a study while it goes on.

    Without the next step: such a page has buttons for it, and the search may still train.
    """
    full = page.folded("The answer in full", sections.answer_in_full(results, judged=False))
    notes = page.notes(sections.warnings(results))
    return _summary(results, steps=False) + notes + confidence.verdict(results) + full


def _summary(results: SearchResults, steps: bool) -> str:
    """Returns the lines of `results.verdict.summary`.

    steps: with how far to trust the answer, the warnings, folded, and the next step, where nothing else says them
    """
    known = summary(results)
    # "ε = 1   (95 % confidence set …)", or "no answer: why".
    chosen, _, detail = known.answer.partition("   (" if "   (" in known.answer else ": ")
    size = " long" if len(chosen) > LONG else ""
    parts = [
        f'<div class="tile main"><div class="label">{_label(results)}</div>'
        f'<div class="value{size}">{page.prose(chosen)}</div>'
        f'<div class="detail">{page.prose(_sentence(detail.removesuffix(")")))}</div></div>',
        _table(known),
        page.small("The figure has the tasks of the search.") if known.rows and results.score_on == "cv" else "",
        *((_trust(known), _warnings(results), _step(known)) if steps else ()),
    ]
    return f'<section class="summary" aria-label="Summary">{"".join(parts)}</section>'


def _table(known: Summary) -> str:
    """Returns the table of the evaluation; "" before it has run."""
    if not known.rows:
        return ""
    header = [(known.tasks, ""), *((metric.partition(" ")[0], metric.partition(" ")[2]) for metric in known.metrics)]
    body = "".join(page.row(map(page.prose, row)) for row in known.rows)
    return page.grid(header, body, "Evaluation", "brief")


def _label(results: SearchResults) -> str:
    """Returns the name of the answer, which is provisional where its seeds do not resolve it."""
    return "Answer, provisional" if trust(results).verdict.kind == "open" else "Answer"


def _trust(known: Summary) -> str:
    """Returns the strongest reason for or against the answer; "" without one."""
    return f'<p class="trust">{page.prose(_sentence(known.trust))}</p>' if known.trust else ""


def _warnings(results: SearchResults) -> str:
    """Returns the warnings, folded under their number; "" without any."""
    found = sections.warnings(results)
    count = f"{len(found)} caution{'s' * (len(found) != 1)}"
    return f'<div class="cautions">{page.folded(count, page.notes(found))}</div>' if found else ""


def _step(known: Summary) -> str:
    """Returns the next step, a command with a button that copies it or a sentence."""
    if not known.next_step:
        return ""
    if not known.is_command:
        return f'<p class="next"><b>Next</b> {page.prose(known.next_step)}</p>'
    command = f"epsearch {known.next_step}"
    return f'<div class="next"><b>Next</b>{page.code(NEXT, command, "Next command", "command")}</div>'


def _sentence(text: str) -> str:
    """Returns words as the start of a line; a symbol such as ε or a number stays as it is."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text
