"""Kinds of study: a search, comparisons of methods and of memories, protocols."""

from epsearch.study.description import Study
from epsearch.study.kinds.one_method import OneMethod
from epsearch.study.kinds.protocol_study import ProtocolStudy
from epsearch.study.kinds.search import Search
from epsearch.study.kinds.tables import Comparison, MemoryStudy, Table
from epsearch.study.option import REQUEST

__all__ = [
    "EXTENDABLE",
    "KINDS",
    "REQUESTS",
    "Comparison",
    "MemoryStudy",
    "OneMethod",
    "ProtocolStudy",
    "Search",
    "Table",
]

KINDS: dict[str, type[Study]] = {kind.kind: kind for kind in (Search, Comparison, MemoryStudy, ProtocolStudy)}

REQUESTS = tuple(
    {name: option for kind in KINDS.values() for name, option in kind.options().items() if option.scope == REQUEST}
)
"""Options that a ledger stores for the newest run."""
EXTENDABLE = tuple(name for name, option in Search.options().items() if option.extendable)
"""Options that may change when a stored search is extended."""
