"""Imports code of plug-ins, hashes it, reports its errors."""
