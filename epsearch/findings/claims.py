"""The claim of a study, and the members that decide it."""

from collections.abc import Sequence

from epsearch.loop.base import Loop
from epsearch.loop.claim import claim_hash
from results.claims import Claim, StoredClaim
from results.ledger.record import RunRecord
from results.metrics import average_accuracy

SECONDS = len("2025-01-17T12:00:00")


def stored_claim(loop: Loop, extended: bool = False) -> StoredClaim | None:
    """Returns the claim of a study with its members so far; None without a claim."""
    text = getattr(loop.study, "claim", None)
    if text is None:
        return None
    claim, runs = Claim.of(text), loop.claimable()
    sides = [runs.get(name, []) for name in (claim.first, claim.second)]
    first, second = (_values(loop.records_of(wanted)) for wanted in sides)
    missing = sum(len(wanted) - len(loop.records_of(wanted)) if wanted else len(loop.study.units) for wanted in sides)
    members = [record for wanted in sides for record in loop.records_of(wanted)]
    diverged = sum(record.status != "ok" for record in members)
    # To the second, as records have their time.
    earlier = sum(record.created[:SECONDS] < loop.stored_at[:SECONDS] for record in members)
    return StoredClaim(claim, claim_hash(loop), first, second, missing, diverged, earlier, extended)


def _values(records: Sequence[RunRecord]) -> dict[int, float]:
    """Returns A_T in percent by unit, of members that did not diverge."""
    return {one.unit: 100 * float(average_accuracy(one.accuracies)) for one in records if one.status == "ok"}
