"""How many members a search has, and may yet want."""

from typing import NamedTuple


class Outlook(NamedTuple):
    """Members. known: in the ledger. now: missing in the present stage. least, most: of later rounds of the search.

    final: of the evaluation, as far as it is not the present stage. certified: to be trained once more, alone.
    """

    known: int
    now: int
    least: int
    most: int
    final: int
    certified: int

    @property
    def fewest(self) -> int:
        """To be trained, if the search ends as early as it can."""
        return self.now + self.least + self.final + self.certified

    @property
    def largest(self) -> int:
        """To be trained, if every round comes and no point is met twice."""
        return self.now + self.most + self.final + self.certified
