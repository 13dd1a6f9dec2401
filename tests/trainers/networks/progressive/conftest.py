"""What tests of networks that grow share."""

import pytest
import torch


@pytest.fixture
def without_gradients():
    with torch.inference_mode():
        yield
