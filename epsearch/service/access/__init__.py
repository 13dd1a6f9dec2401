"""Who may do what, from where, and how much: tokens, sessions, guard of all requests."""
