"""The access log: complete lines to standard output or a file; it never delays a request."""
