"""TLS: certificates and keys as they are loaded, contexts towards clients and towards backends."""
