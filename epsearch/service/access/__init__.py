"""Access control: tokens, sessions, rate limits."""
