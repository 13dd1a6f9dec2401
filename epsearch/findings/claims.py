"""The claim of a study, and the members that decide it."""

from collections.abc import Sequence

from epsearch.loop.base import Loop
from epsearch.loop.claim import claim_hash
from results.claims import Claim, StoredClaim
from results.ledger.record import RunRecord
from results.metrics import average_accuracy

SECONDS = len("2025-01-17T12:00:00")


def stored_claim(loop: Loop) -> StoredClaim | None:
    """Returns the claim of a study with its members so far; None without a claim."""
    text = getattr(loop.study, "claim", None)
    if text is None:
        return None
    claim, runs = Claim.of(text), loop.claimable()
    sides = [runs.get(name, []) for name in (claim.first, claim.second)]
    first, second = map(loop.records_of, sides)
    members = (*first, *second)
    return StoredClaim(
        claim=claim,
        digest=claim_hash(loop),
        first=_values(first),
        second=_values(second),
        missing=sum(len(side) or len(loop.study.units) for side in sides) - len(members),
        diverged=sum(record.status != "ok" for record in members),
        # To the second, as records have their time.
        earlier=sum(record.created[:SECONDS] < loop.stored_at[:SECONDS] for record in members),
        extended=bool(getattr(loop, "earlier", ())),
    )


def _values(records: Sequence[RunRecord]) -> dict[int, float]:
    """Returns A_T in percent by unit, of members that did not diverge."""
    return {
        record.unit: 100 * float(average_accuracy(record.accuracies)) for record in records if record.status == "ok"
    }
