"""TLS: contexts of certificates and rules, the wire that speaks it, who accepts on its ports, and what bounds its handshakes.

Must never: know a request, nor decide which certificate fits a name; nor include a header of a TLS library (csrc/tls/tls.h).
"""
