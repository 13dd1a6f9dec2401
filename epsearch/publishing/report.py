"""Report of a publication, and messages of other tools without the passwords of their URLs."""

from typing import NamedTuple

from results.ledger.url import LedgerUrl, without_passwords


class PublishReport(NamedTuple):
    """Counts of a publication."""

    places: int
    """Points, or rows, of the study in the tool, evaluations included."""
    added: int
    """New or changed ones among them."""
    files: int
    """New or changed files of the report."""
    view_command: str
    """The command, or the address, to view it."""
    remark: str = ""
    """A sentence on a difference between the names of the tool and of epsearch; "" for none."""


def mask_passwords(text: str, url: str) -> str:
    """Returns a message on one line, with stars for the passwords of the URL in it."""
    return without_passwords(" ".join(text.split()), [LedgerUrl(url)])
