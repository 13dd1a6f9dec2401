"""The files that a study writes: pages, tables, figures."""
