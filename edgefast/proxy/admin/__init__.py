"""The operator's servers: admin, metrics and readiness, and what they look up to answer."""
