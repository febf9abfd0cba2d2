"""What the cluster tests need beside Debian packages: Go programs and CRDs, built once into a cache folder."""
