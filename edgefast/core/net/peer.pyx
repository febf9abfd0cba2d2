# The peer of a client's connection: what all requests on it have in common.
#
# In: the port it came to, TLS facts, the socket's address or what the PROXY protocol says. Out: facts that exchanges read. It is no
# connection: nothing can be sent to it.

cdef class Peer:
    def __cinit__(self, PortTable port, bint tls):
        self.port = port
        self.tls = tls
        self.address_port = -1

    cdef int take_wire(self, Wire wire) except -1:
        """Facts of its TLS. Returns its place in cells.HANDSHAKES_DONE."""
        self.sni = wire.sni()
        wire.describe(&self.tls_facts)
        return 2 * (strcmp(self.tls_facts.version, b"TLSv1.3") == 0) + (1 if self.tls_facts.resumed else 0)

    cdef int take_address(self, bytes text) except -1:
        """Who it is."""
        cdef uint8_t address[INET_SIZE]
        self.address = text
        self.internal = inet_read_bytes(text, address) and inet_is_private(address)
        self.own_lines = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n%b" % (
            text,
            b"https" if self.tls else b"http",
            b"x-edge-internal: true\r\n" if self.internal else b"x-edge-external-address: %b\r\n" % text,
        )
        return 0
