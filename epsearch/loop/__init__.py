"""Which members a study wants, and what came of them: `base` is what loops share, `search` and `table` are two."""
