"""Contract suites for plug-ins: methods, networks, protocols, streams, strategies, trainers.

Each function returns pairs (name, check), for `pytest.mark.parametrize` or a loop; a check raises AssertionError, one
sentence, where a promise is broken. pytest is not needed. epsearch's own plug-ins pass the same suites.
"""

from epsearch.testing.methods import method_checks
from epsearch.testing.networks import network_checks
from epsearch.testing.promises import Check, failures
from epsearch.testing.protocols import protocol_checks
from epsearch.testing.strategies import strategy_checks
from epsearch.testing.streams import stream_checks
from epsearch.testing.trainers import trainer_checks

__all__ = [
    "Check",
    "failures",
    "method_checks",
    "network_checks",
    "protocol_checks",
    "strategy_checks",
    "stream_checks",
    "trainer_checks",
]
