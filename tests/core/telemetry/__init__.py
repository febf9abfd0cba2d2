"""Counters, lines of the access log, spans."""
