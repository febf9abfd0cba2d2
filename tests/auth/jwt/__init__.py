"""Signed tokens, held against the vectors of the RFCs and two libraries that others wrote."""
