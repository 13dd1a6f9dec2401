"""Code from outside of the package: imported, hashed, and what it raises."""
