"""The files that a study writes: pages, tables, figures; each page has a module of its numbers."""
