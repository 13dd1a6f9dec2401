"""Every exception in one line and a status, crash reports, signals."""
