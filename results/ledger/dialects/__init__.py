"""The databases of a ledger: SQLite and PostgreSQL."""
