"""The files that a study leaves: pages, tables, figures; a module of numbers behind each page."""
