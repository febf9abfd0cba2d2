"""The access log: whole lines to standard output or a file, never in a request's way."""
