"""Data structures that the standard library does not have."""
