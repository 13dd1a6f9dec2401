"""Speed and time to go, from what was reported when."""

import pytest

from epsearch.runners.eta import Speed


def test_time_starts_with_the_first_report():
    """Workers that start do not count as slow training."""
    speed = Speed()
    assert speed.steps_per_second() is None and speed.seconds_for(1000) is None
    speed.add(140, 10, 10)
    assert speed.steps_per_second() is None
    speed.add(145, 50, 50)
    assert speed.steps_per_second() == 10 and speed.seconds_for(940) == 94
    assert speed.steps == 60 and speed.seconds_for(-5) == 0


def test_time_to_go_counts_what_steps_take():
    """Steps of another weight: 50 of weight 5 in ten seconds are 25 a second."""
    speed = Speed()
    for second in (10, 20):
        speed.add(second, 50, 250)
    assert speed.steps_per_second() == 5 and speed.seconds_for(500) == pytest.approx(500 / 25)


def test_speed_is_that_of_the_last_minute():
    speed = Speed()
    for second in range(200):
        count = 10 if second < 100 else 30
        speed.add(second, count, count)
    assert speed.steps_per_second() == 30
