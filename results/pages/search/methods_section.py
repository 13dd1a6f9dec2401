"""The section of the report that a paper can quote: formula, methods paragraph, BibTeX."""

from html import escape

from results.html import page
from results.pages.search.methods_text import bibtex, formula, methods_paragraph
from results.search import SearchResults

GRADIENTS = "g: gradient on the mini-batch; g_ref: on the batch drawn from the memory; ĝ and ĝ_ref have unit length."


def methods(results: SearchResults) -> str:
    """Returns the section with the method's formula, the paragraph to paste, and the BibTeX entries, which unfold."""
    return page.section(
        "For a paper",
        _formula(formula(results)),
        page.code("methods-paragraph", methods_paragraph(results), "Methods paragraph", "text"),
        page.fold("BibTeX", page.code("bibtex", bibtex(results), "BibTeX")),
    )


def _formula(text: str) -> str:
    """Returns a formula as HTML; "" without one."""
    lines = {"formula": text, "after": GRADIENTS} if text else {}
    html = (f'<p class="{kind}">{escape(line)}</p>' for kind, line in lines.items())
    return "".join(html).replace("_ref", "<sub>ref</sub>")
