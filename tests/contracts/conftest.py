"""The fixtures of those whose promises are tested here."""

from tests.results.conftest import postgresql, store, url
from tests.search_spaces.conftest import coarse_gp
from tests.trainers.conftest import one_thread, told

__all__ = ["coarse_gp", "one_thread", "postgresql", "store", "told", "url"]
