"""Translations for other libraries; the only place here that imports them."""
