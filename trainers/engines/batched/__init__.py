"""Members in one batch of tensors: GPUs, their twin on the CPU, residual networks."""
