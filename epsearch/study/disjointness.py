"""What is known of the seal between search and evaluation."""

from typing import NamedTuple


class Disjointness(NamedTuple):
    """Whether search and evaluation share nothing, and a sentence about it; "" where there is nothing to prove."""

    sound: bool = True
    sentence: str = ""
