"""Owners of studies: their tokens, their studies in the queue, and how many they may have."""

from collections import Counter

from epsearch.service.access.tokens import Token
from epsearch.service.answers import Credential, Person
from epsearch.service.settings import Settings
from results.ledger.store import Store


class People:
    """The owners of one service."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store

    def visible_to(self, token: Token) -> list[Person]:
        """Returns the owners of tokens and studies: all to an admin, else the owner of the token alone."""
        submissions, states = self._store.queue.submissions(), self._store.leases.states()
        queued = [submission for submission in submissions.values() if submission.open]
        running = [submission for submission in queued if submission.study in states and states[submission.study].held]
        studies, waiting_or_running, in_training = (
            Counter(submission.submitter for submission in group) for group in (submissions.values(), queued, running)
        )
        tokens: dict[str, list[Credential]] = {}
        for valid in self._settings.tokens.valid:
            credential = Credential(name=valid.name, role=valid.role, expires=valid.expires or None)
            tokens.setdefault(valid.owner, []).append(credential)
        return [
            Person(
                name=owner,
                tokens=tokens.get(owner, []),
                queued=waiting_or_running[owner],
                running=in_training[owner],
                max_queued=self._settings.limits.each,
                max_running=self._settings.most_running,
                studies=studies[owner],
            )
            for owner in sorted({*tokens, *studies} - {""})
            if token.is_admin or owner == token.owner
        ]
