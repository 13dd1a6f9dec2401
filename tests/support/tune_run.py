"""A real Tuner.fit around a strategy that holds a lock; run as a program with the address of a Ray of two cores, it
prints what came of it as JSON.

A process of its own: Ray reads its environment when it is imported, and a hanging search can be killed.
"""

import json
import os
import sys
import tempfile
import threading
from math import nan

from search_spaces import IntervalNarrowing, Parameter

SETTINGS = {
    "RAY_AIR_NEW_OUTPUT": "0",  # the new output prints a banner even when told to be silent
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under `uv run`, workers would be started by another `uv run`, and hang
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # their imports take longer than the search
}
DIVERGES, FAILS = 1, 9  # a failure costs Tune a new process, unless it comes last


class Locked(IntervalNarrowing):
    """Cannot be pickled, as a source with a database handle cannot."""

    def __init__(self):
        super().__init__(Parameter("epsilon", 0, 1), points=5, repeats=2)
        self.lock = threading.Lock()

    def tell(self, observations):
        with self.lock:
            super().tell(observations)


def loss(number, epsilon):
    """Of a suggestion; None where its trial fails."""
    if number == FAILS:
        return None
    return nan if number == DIVERGES else abs(epsilon - 0.7)


def trainable(config):
    from ray import tune

    value = loss(config["number"], config["epsilon"])
    if value is None:
        raise RuntimeError("meant to fail")
    tune.report({"loss": value})


def main():
    import ray
    from ray import tune

    from search_spaces.adapters.ray_tune import strategy_searcher

    strategy = Locked()
    searcher = strategy_searcher(strategy, ["epsilon"], metric="loss", mode="min")
    ray.init(sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
    tuning = tune.TuneConfig(search_alg=searcher, num_samples=-1, max_concurrent_trials=2, reuse_actors=True)
    with tempfile.TemporaryDirectory() as folder:
        running = tune.RunConfig(storage_path=folder, name="search", verbose=0)
        alone = tune.with_resources(trainable, {"cpu": 2})
        results = tune.Tuner(alone, tune_config=tuning, run_config=running).fit()
    rounds = [[one.points, one.scores, one.winners] for one in strategy.rounds]
    print(json.dumps({"rounds": rounds, "trials": len(results), "errors": results.num_errors, "done": strategy.done}))
    ray.shutdown()


if __name__ == "__main__":
    os.environ.update(SETTINGS)
    main()
