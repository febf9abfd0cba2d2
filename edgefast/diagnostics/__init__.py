"""Diagnostics: problems of objects, their reasons, and the redaction of secrets. Pure: no I/O, no clock."""
