"""The operator's servers (admin, metrics and readiness) and the data of their answers."""
