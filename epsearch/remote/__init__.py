"""HTTP client of a service, used by the command line."""
