"""The queue of the service: scheduler, training processes, plans."""
