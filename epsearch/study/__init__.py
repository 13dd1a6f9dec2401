"""The description of a study: kinds, options, parsers, bounds."""
