"""One-line error messages, exit statuses, crash reports, signals."""
