"""Traces: spans from the worker that recorded them to collectors, and the exemplars that they leave."""
