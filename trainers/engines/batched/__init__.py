"""Members in one batch of tensors: GPUs, residual networks, users' networks."""
