"""The mark `few(n)`: n cases of a test are in the default suite, the others are slow."""

from collections import defaultdict

GOLDEN = (5**0.5 - 1) / 2


def far_apart(count, few):
    """Returns the numbers of cases that stay: the first, and others far apart by the golden ratio.

    So values of all things that vary stay, as far as their number allows.

    >>> far_apart(20, 5)
    [0, 5, 10, 13, 18]
    >>> far_apart(3, 5)
    [0, 1, 2]
    """
    return sorted(sorted(range(count), key=lambda number: number * GOLDEN % 1)[:few])


def mark_slow(items):
    """Marks cases of tests with the mark `few(n)` slow, but n of those that are not slow themselves."""
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        stay = far_apart(len(cases), cases[0].get_closest_marker("few").args[0])
        for number in {*range(len(cases))} - {*stay}:
            cases[number].add_marker("slow")
