"""Networks of users: a torch.nn.Module for each member, all of them at once where torch.func can."""
