"""The commands of the command line, in groups."""
