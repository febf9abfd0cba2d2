# Protocol negotiation: a connection to an endpoint before its protocol is known.

cdef class ProtocolNegotiation(Session):
    cdef:
        Engine engine
        Endpoint endpoint
        HttpSettings settings   # of whoever asked for it
        PoolDial dial           # None when it is somebody
        object tls          # of the cluster, as it was; None: plain
        object wanted       # what the handshake is made with: `tls`, or the one that offers HTTP/1.1 alone
        str sni
        UpstreamProtocol protocol

    cdef int replace_with(self, Session session) except -1
