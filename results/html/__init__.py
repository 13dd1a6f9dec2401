"""Self-contained HTML pages: template, tables, figures."""
