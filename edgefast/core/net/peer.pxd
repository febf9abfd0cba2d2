# Peer: the other end of a client's connection.

cdef enum:
    OWN_LINES = 256  # bytes, more than the lines with two addresses of INET_TEXT have


cdef class Peer:
    cdef:
        PortTable port
        bytes address           # as the PROXY protocol or the socket says, in the one spelling of inetaddr.pyx
        int address_port        # as the PROXY protocol says; -1: the socket's
        bytes local, remote     # both ends of the socket, "10.0.0.1:80"; None until a log asks
        bytes sni               # lower case; None: plain, or no SNI
        bytes own_lines         # forwarding lines for a request that brings no x-forwarded-for
        ClientCertificate certificate   # that it has shown; None: it was not asked for one
        CertificateHeaders certificate_headers  # whose lines these are; None: none were made yet
        bytes certificate_element, certificate_lines
        WireFacts tls_facts     # of TLS
        bint tls
        bint placed             # its connection counts among its port's (h1/connection_limit.pyx)
        bint internal           # `address` is a private one

    cdef int take_wire(self, Wire wire) except -1
    cdef int take_address(self, bytes text) except -1
    cdef int take_host(self, const uint8_t *host) except -1
    cdef int write_lines(self) except -1
