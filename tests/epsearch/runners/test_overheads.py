"""What a run takes besides its training is remembered, in the cache folder, and no more than an estimate."""

from epsearch.runners import overheads
from epsearch.runners.registry import LOCAL, TUNE


def test_the_median_of_the_last_runs_is_expected(tmp_path, monkeypatch):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "new"))
    assert TUNE.overhead == TUNE.usual_overhead
    for seconds in (100.0, 90.0, 3.0, 1.0, 2.0, 4.0, 80.0):
        overheads.remember("tune", seconds)
    assert TUNE.overhead == 3.0, "of the last five"
    assert LOCAL.overhead == LOCAL.usual_overhead


def test_a_busy_hour_is_no_slow_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path))
    overheads.remember(overheads.REPORT, 8.0, share=0.25)
    assert overheads.expected_seconds(overheads.REPORT) == 2.0


def test_what_cannot_be_kept_or_read_costs_nothing_but_the_estimate(tmp_path, monkeypatch):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path))
    overheads.remember("tune", 1.0)
    (tmp_path / "seconds").write_bytes(b"half of a")
    assert TUNE.overhead == TUNE.usual_overhead
    overheads.remember("tune", 2.0)
    assert TUNE.overhead == 2.0
    (tmp_path / "file").touch()
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "file" / "below"))
    overheads.remember("tune", 1.0)
    assert TUNE.overhead == TUNE.usual_overhead
