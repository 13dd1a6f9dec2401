"""One page as a file that needs nothing else: its frame, tables, figures and small print."""
