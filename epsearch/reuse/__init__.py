"""Verification, export, import and networks of stored studies."""
