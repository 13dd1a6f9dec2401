"""Every training test on one thread, as workers train: the thread count may change a sum's rounding. And `told`."""

import pytest

from trainers.notes import redirect_notes


@pytest.fixture(autouse=True)
def one_thread():
    import torch  # the process that only hands out tests reads this file, too

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def told():
    """The lines for the user that are told from now on."""
    lines = []
    with redirect_notes(lines.append):
        yield lines
