"""Ray Tune: start, payload, watchdog, cleanup."""
