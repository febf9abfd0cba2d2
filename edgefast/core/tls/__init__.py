"""TLS: contexts of certificates and rules, the TLS wire, the acceptors of its ports, and the bounds of its handshakes.

Must never: know a request, or decide which certificate fits a name, or include a header of a TLS
library (csrc/tls/tls.h).
"""
