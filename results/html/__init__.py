"""One page as a self-contained file: its template, tables, figures and last sections."""
