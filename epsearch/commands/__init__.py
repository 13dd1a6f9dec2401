"""Commands in groups, each of which adds its own to the command line."""
