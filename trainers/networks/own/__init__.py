"""Users' torch.nn.Module networks, for many members at once by torch.func."""
