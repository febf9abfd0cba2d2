"""Build the files of a release: wheels, Debian packages and their bills of materials (RELEASING.md)."""
