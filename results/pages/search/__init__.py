"""The report of a search, one module a section."""
