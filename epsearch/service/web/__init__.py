"""Server-rendered pages, readable without scripts."""
