"""What publishing did, and messages of other tools without the passwords of their URLs."""

from typing import NamedTuple

from results.ledger.url import LedgerUrl, without_passwords


class Told(NamedTuple):
    """What was written; everything else was there already."""

    places: int
    """Points, or rows, of the study that are there now, evaluations included."""
    added: int
    """Those that were not, or have changed."""
    files: int
    """Files of the report that were not, or have changed."""
    look: str
    """The command that shows it, or where it is seen."""


def masked(text: str, url: str) -> str:
    """Returns a message on one line, with stars for the passwords of the URL in it."""
    return without_passwords(" ".join(text.split()), [LedgerUrl(url)])
