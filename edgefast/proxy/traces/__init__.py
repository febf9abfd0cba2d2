"""Traces: spans from workers to collectors, and their exemplars."""
