"""The claim of a study: its hash, and the condition under which it may be stored."""

import hashlib
import json

from epsearch.failures.errors import UsageError
from epsearch.loop.base import Loop
from epsearch.loop.content import determining_part
from results.labels import count_text

LENGTH = 16
"""Hexadecimal digits of a hash."""


def claim_hash(loop: Loop) -> str:
    """Returns a hash of all options that determine a study's results, its claim among them, and of its stream.

    Of an extended study that of its first version, with which the claim was stored.
    """
    first = next((earlier.study for earlier in getattr(loop, "earlier", ())), loop.study)
    content = {"study": first.identity(), "stream": determining_part(loop.images)}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:LENGTH]


def check_claim(loop: Loop) -> None:
    """Raises UsageError where members of the evaluation of a study that is not stored yet are known already."""
    evaluated = sum(record.phase == "eval" for record in loop.records.values())
    if getattr(loop.study, "claim", None) is not None and evaluated:
        raise UsageError(
            f"claim must be stored before the evaluation; the ledger has {count_text(evaluated, 'member')} of it "
            "already; choose other --seeds or --out"
        )
