"""The databases that a ledger can lie in: SQLite files and PostgreSQL servers."""
