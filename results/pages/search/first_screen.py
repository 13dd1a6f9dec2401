"""The first screen of a report: the answer in a few lines beside the figure, and the next step."""

from results.html import page
from results.pages.search import confidence, sections
from results.search import SearchResults
from results.verdict import claim, wording
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
    full = page.fold("The answer in full", sections.answer_in_full(results, judged=False))
    notes = page.notes(sections.warnings(results))
    return _summary(results, steps=False) + notes + confidence.verdict(results) + full


def _summary(results: SearchResults, steps: bool) -> str:
    """Returns the lines of `results.verdict.summary`.

    steps: with how far to trust the answer, the warnings, folded, and the next step, where nothing else says them
    """
    brief = summary(results)
    # "ε = 1   (95 % confidence set …)", or "no answer: why".
    chosen, _, detail = brief.answer.partition("   (" if "   (" in brief.answer else ": ")
    size = " long" if len(chosen) > LONG else ""
    parts = [
        f'<div class="tile main"><div class="label">{_label(results)}</div>'
        f'<div class="value{size}">{page.prose(chosen)}</div>'
        f'<div class="detail">{page.prose(wording.heading(detail.removesuffix(")")))}</div></div>',
        _table(brief),
        page.small("The figure has the tasks of the search.") if brief.rows and _of_search(results) else "",
        *(page.small(text) for text in brief.references),
        *(page.small(text) for text in (() if results.claim is None else claim.sentences(results.claim))),
        *((_trust(brief), _warnings(results), _step(brief)) if steps else ()),
    ]
    return f'<section class="summary" aria-label="Summary">{"".join(parts)}</section>'


def _table(brief: Summary) -> str:
    """Returns the table of the evaluation; "" before it has run."""
    if not brief.rows:
        return ""
    header = [(brief.tasks, ""), *((metric.partition(" ")[0], metric.partition(" ")[2]) for metric in brief.metrics)]
    body = "".join(page.row(map(page.prose, row)) for row in brief.rows)
    return page.grid(header, body, "Evaluation", "brief")


def _of_search(results: SearchResults) -> bool:
    """Returns whether the figure has the tasks of the search alone; a predicted curve has those of the evaluation."""
    return results.score_on == "cv" and not results.stages


def _label(results: SearchResults) -> str:
    """Returns the name of the answer, which is provisional where its seeds do not resolve it."""
    if results.stages:
        return "Answer" if results.stages[-1].resolved else "Answer, provisional"
    return "Answer, provisional" if trust(results).verdict.kind == "open" else "Answer"


def _trust(brief: Summary) -> str:
    """Returns the strongest reason for or against the answer; "" without one."""
    return f'<p class="trust">{page.prose(wording.heading(brief.trust))}</p>' if brief.trust else ""


def _warnings(results: SearchResults) -> str:
    """Returns the warnings, folded under their number; "" without any."""
    cautions = sections.warnings(results)
    count = f"{len(cautions)} caution{'s' * (len(cautions) != 1)}"
    return f'<div class="cautions">{page.fold(count, page.notes(cautions))}</div>' if cautions else ""


def _step(brief: Summary) -> str:
    """Returns the next step, a command with a button that copies it or a sentence."""
    if not brief.next_step:
        return ""
    if not brief.next_step.startswith("epsearch "):
        return f'<p class="next"><b>Next</b> {page.prose(brief.next_step)}</p>'
    return f'<div class="next"><b>Next</b>{page.code(NEXT, brief.next_step, "Next command", "command")}</div>'
