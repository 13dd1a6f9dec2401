"""A search all of whose members diverged: what its line advises is what its user can do."""

from types import SimpleNamespace

import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.search import search_results


@pytest.mark.parametrize(
    ("foreign", "searched", "advice"),
    [
        (False, ("epsilon",), "try a smaller --lr"),
        (False, ("lr", "epsilon"), "try other values of lr, epsilon"),
        (True, ("decay",), "try other values of decay"),
    ],
)
def test_advice_applies(foreign, searched, advice):
    """A trainer has no --lr, nor has a search of lr."""
    study = SimpleNamespace(name="one", foreign=foreign, space=SimpleNamespace(names=searched))
    with pytest.raises(UsageError, match=f"^study 'one' has no value left to choose: .* diverged; {advice}$"):
        search_results(SimpleNamespace(best=None, done=True, study=study), {})
