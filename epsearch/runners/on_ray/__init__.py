"""Ray Tune: started or joined, what it carries, what it loses, what it leaves."""
