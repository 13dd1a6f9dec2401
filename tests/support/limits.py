"""How long tests wait for another thread or process."""

HANGS = 3600  # seconds, after which a test says that it hangs: no machine is so slow, and nothing is timed by it
