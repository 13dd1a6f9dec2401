"""The mark `few(n)`: n cases of a test are in the default suite, as many are slow, the others exhaustive."""

from collections import defaultdict

GOLDEN = (5**0.5 - 1) / 2


def far_apart(count):
    """Returns the numbers of all cases, such that however many of the first ones are far apart, by the golden ratio.

    So the first ones have values of all things that vary, as far as their number allows.

    >>> far_apart(20)[:5], far_apart(3)
    ([0, 13, 5, 18, 10], [0, 2, 1])
    """
    return sorted(range(count), key=lambda number: number * GOLDEN % 1)


def mark_cases(items):
    """Marks cases of tests with the mark `few(n)` slow or exhaustive, but n of those that are not slow themselves."""
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        few = cases[0].get_closest_marker("few").args[0]
        cases = [cases[number] for number in far_apart(len(cases))]
        default = [case for case in cases if not case.get_closest_marker("slow")][:few]
        others = (case for case in cases if case not in default)
        for place, case in enumerate(others):
            case.add_marker("slow" if place < few else "exhaustive")
