"""Engines of SQLAlchemy, with errors of one line."""

from typing import Any

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.exc import ArgumentError

from results.ledger.errors import StoreError
from results.ledger.url import LedgerUrl

ALLOWED = "allowed: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"


def make_engine(place: URL, url: LedgerUrl, **options: Any) -> Engine:
    """Returns an engine. Raises StoreError for options in the URL that do not exist, and without the driver."""
    try:
        return create_engine(place, **options)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the ledger {url} needs the package {error.name}: pip install 'epsearch[postgres]'"
        ) from error
    except (ArgumentError, ValueError, TypeError):
        raise StoreError(f"the ledger's URL cannot be read: {str(url)!r}; {ALLOWED}") from None
