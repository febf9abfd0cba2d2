"""TLS: loaded certificates and keys, contexts towards clients and towards backends."""
