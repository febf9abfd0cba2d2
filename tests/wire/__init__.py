"""Wire tests: a real proxy process on loopback, raw bytes in, exact bytes out. See README.md in this folder."""
