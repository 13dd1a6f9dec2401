"""Owners of studies: their tokens, their studies in the queue, and how many they may have."""

from collections import Counter

from epsearch.findings.listing import study_names
from epsearch.service.access.tokens import Token
from epsearch.service.answers import Credential, Person
from epsearch.service.settings import Settings
from results.ledger.store import Store
from results.ledger.writers.states import RUNNING


class People:
    """The owners of one service."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store

    def visible_to(self, token: Token) -> list[Person]:
        """Returns all owners for an admin, else the owner of the token alone; none for a service without tokens."""
        tokens = self._settings.tokens.valid
        submissions, states = self._store.queue.submissions(), self._store.leases.states()
        stored = set(study_names(self._store))
        owned = {name: one for name, one in submissions.items() if name in stored}
        owners = {one.owner for one in tokens} | {one.submitter for one in owned.values()} - {""}
        studies = Counter(one.submitter for one in owned.values())
        queued = Counter(one.submitter for one in owned.values() if one.open)
        running = Counter(
            one.submitter
            for name, one in owned.items()
            if one.open and name in states and states[name].held and states[name].state == RUNNING
        )
        own = self._settings
        return [
            Person(
                name=owner,
                tokens=[
                    Credential(name=one.name, role=one.role, expires=one.expires or None)
                    for one in tokens
                    if one.owner == owner
                ],
                queued=queued[owner],
                running=running[owner],
                max_queued=own.limits.each,
                max_running=min(own.parallel_each or own.parallel, own.parallel),
                studies=studies[owner],
            )
            for owner in sorted(owners - {""})
            if token.is_admin or owner == token.owner
        ]
