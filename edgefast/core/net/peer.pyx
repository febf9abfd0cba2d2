# Peer: the facts about a client's connection that all requests on it share.
#
# In: the port, TLS facts, the address of the socket or of the PROXY protocol. Out: facts that exchanges read. It is no connection: nothing
# can be sent to it.

cdef Peer make_peer(PortTable port, bint tls):
    cdef Peer peer = Peer.__new__(Peer)
    peer.port = port
    peer.tls = tls
    peer.address_port = -1
    return peer


cdef class Peer:
    cdef int take_wire(self, Wire wire) except -1:
        """Facts of its TLS, and who it is if that was said before. Returns its place in cells.HANDSHAKES_DONE."""
        cdef int port = -1
        cdef bytes claimed = wire.claimed(&port)
        if claimed is not None:
            self.take_address(claimed)
            self.address_port = port
        self.sni = wire.sni()
        self.certificate = wire.client_certificate()
        wire.describe(&self.tls_facts)
        return 2 * (strcmp(self.tls_facts.version, b"TLSv1.3") == 0) + (1 if self.tls_facts.resumed else 0)

    cdef int take_host(self, const uint8_t *host) except -1:
        """Who it is, as the socket says."""
        self.address = inet_text(host)
        self.internal = inet_is_private(host)
        return self.write_lines()

    cdef int take_address(self, bytes text) except -1:
        """Who it is, as the PROXY protocol says."""
        cdef uint8_t host[INET_SIZE]
        self.address = text
        self.internal = inet_read_bytes(text, host) and inet_is_private(host)
        return self.write_lines()

    cdef int write_lines(self) except -1:
        """Each connection has them: no formatting through objects."""
        cdef uint8_t lines[OWN_LINES]
        cdef Out out
        cdef bytes text = self.address
        out.data = lines
        out.size = 0
        out_raw(&out, <const char *>b"x-forwarded-for: ", 17)
        out_bytes(&out, text)
        if self.tls:
            out_raw(&out, <const char *>b"\r\nx-forwarded-proto: https\r\n", 28)
        else:
            out_raw(&out, <const char *>b"\r\nx-forwarded-proto: http\r\n", 27)
        if self.internal:
            out_raw(&out, <const char *>b"x-edge-internal: true\r\n", 23)
        else:
            out_raw(&out, <const char *>b"x-edge-external-address: ", 25)
            out_bytes(&out, text)
            out_raw(&out, <const char *>b"\r\n", 2)
        self.own_lines = lines[:out.size]
        return 0
