"""Connections: TLS on the client's side."""
