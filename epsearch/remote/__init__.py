"""A service elsewhere, as the command line uses it: the same studies, over HTTP."""
