# Protocol negotiation: the protocol of a new connection: that of its cluster, or by ALPN (RFC 7301).
#
# In: an open connection. Out: its final session: H1Client or H2Client. If HTTP/2 is required, a backend that did not negotiate it is
# refused before it gets a byte.

cdef class ProtocolNegotiation(Session):
    def __cinit__(self, Engine engine, Endpoint endpoint, HttpSettings settings, PoolDial dial, bint alone):
        cdef Cluster cluster = endpoint.cluster
        self.engine = engine
        self.endpoint = endpoint
        self.settings = settings
        self.dial = dial
        self.tls = cluster.tls
        self.wanted = cluster.tls_h1 if alone and cluster.tls is not None else cluster.tls
        self.sni = cluster.sni
        self.protocol = SPEAKS_H1 if alone else cluster.protocol

    cdef int on_open(self) except -1:
        cdef WireFacts facts
        cdef PoolDial dial = self.dial
        cdef H1Client one
        cdef bint h2 = self.protocol == SPEAKS_H2
        self.dial = None
        if self.tls is not None and self.protocol != SPEAKS_H1:
            memset(&facts, 0, sizeof(facts))
            self.connection.wire.describe(&facts)
            if h2 and not facts.alpn_h2:
                dial.refused = True
                return self.connection.shut(True)
            h2 = facts.alpn_h2
        if not h2:
            one = H1Client.__new__(H1Client, self.engine, self.endpoint)
            one.tls = self.tls
            one.sni = self.sni
            dial.up = one
            return self.replace_with(one)
        return self.replace_with(self.engine.http2.make_client(self.endpoint, self.settings, self.tls, self.sni, dial))

    cdef int replace_with(self, Session session) except -1:
        cdef Connection connection = self.connection
        connection.session = session
        session.connection = connection
        self.connection = None
        return session.on_open()
