# A connection to an endpoint of which nobody knows yet what is spoken on it.

cdef class Newcomer(Session):
    cdef:
        Engine engine
        Endpoint endpoint
        HttpSettings settings   # of whoever asked for it
        PoolDial dial           # None when it is somebody
        TlsContext tls          # of the cluster, as it was; None: plain
        TlsContext wanted       # what the handshake is made with: `tls`, or the one that offers HTTP/1.1 alone
        str sni
        UpstreamProtocol protocol

    cdef int become(self, Session session) except -1
