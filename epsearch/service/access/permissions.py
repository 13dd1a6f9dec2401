"""Permissions: refusals of what a token may not do."""

from epsearch.failures.errors import UsageError
from epsearch.service.access.tokens import Token


class Forbidden(UsageError):
    """The token of the request lacks permission."""


class ReadOnly(Forbidden):
    """The token may only read."""

    def __init__(self, token: Token) -> None:
        super().__init__(f"the token {token.name!r} may only read")


class NotOwner(Forbidden):
    """The study belongs to somebody else; owner: "" for a study that was not submitted with a token."""

    def __init__(self, study: str, owner: str) -> None:
        whose = f"belongs to {owner!r}: only {owner!r} or" if owner else "was not submitted with a token: only"
        super().__init__(f"study {study!r} {whose} an admin may change it")


def check_change(study: str, owner: str, token: Token) -> None:
    """Raises ReadOnly or NotOwner if a token may not change a study of an owner; "" for a study without one."""
    if not token.writes:
        raise ReadOnly(token)
    if not (token.is_admin or token.owner == owner != ""):
        raise NotOwner(study, owner)


def check_priority(priority: int, token: Token) -> None:
    """Raises Forbidden if a token may not let a study of this priority wait less than others."""
    if priority > 0 and not token.is_admin:
        raise Forbidden(f"priority must be 0 or less, got {priority}; only an admin may let a study go first")
