# TLS acceptor: TLS connections of a port, from its accept queue through their handshakes to the codec of HTTPS or to a TCP proxy. The TCP
# proxy gets the decrypted bytes, or all bytes as they came.
#
# A handshake counts as a connection from accept on. Beyond spec.http.maxConnections (layer 4: spec.stream.maxConnections) one is closed
# before anything is read of it. Its time limit is that of a request head, at most HANDSHAKE_MS, or spec.stream.helloTimeout: the longer of
# both until its name is known.

cdef class TlsAcceptor(PortAcceptor):
    cdef Py_ssize_t places(self, const NetAddress *peer) except -1:
        """How many more may be in front of their hello, and how long; none where no listener is."""
        cdef Engine engine = self.engine
        cdef Handshakes handshakes = handshakes_of(engine)
        cdef HttpSettings settings = self.port.settings
        cdef Py_ssize_t places = 0, most = 0
        self.handshake_ms = 0
        self.http_ms = NEVER_MS
        if settings is not None and (self.port.listeners or not self.streams.has_tls):
            most = settings.max_connections
            places = slots_left(engine, self.port, peer.host, <Py_ssize_t>len(handshakes.shaking))
            self.handshake_ms = self.http_ms = settings.head_timeout if settings.head_timeout < HANDSHAKE_MS else HANDSHAKE_MS
        if self.streams.has_tls:
            most = max(most, self.streams.max_connections)
            places = max(places, self.streams.room(engine, <Py_ssize_t>len(handshakes.shaking)))
            self.handshake_ms = max(self.handshake_ms, self.streams.hello_timeout)
        if most == 0:
            return 0
        self.shaking_most = min(max(most // SHAKING_SHARE, SHAKING_LEAST), SHAKING_MOST)
        if places <= 0 and handshakes.make_room(handshakes.shaking, len(handshakes.shaking)):  # who stalls after its hello
            places += 1
        return min(places, HANDSHAKES_MOST)

    cdef Session admit(self, const NetAddress *peer):
        cdef Engine engine = self.engine
        cdef Py_ssize_t places = self.places(peer)
        cdef PendingTlsSession pending_session
        self.client = peer[0]
        if places <= 0 or not handshakes_of(engine).make_room(handshakes_of(engine).silent, places):
            engine.count(G_CONNECTIONS_TOTAL)
            engine.count(G_CONNECTIONS_REFUSED)
            return None
        if not self.streams.has_tls:
            return make_server(engine, self.port, True)
        pending_session = PendingTlsSession.__new__(PendingTlsSession)
        pending_session.engine = engine
        pending_session.port = self.port
        return pending_session

    cdef Wire wire(self):
        cdef TlsWire wire = TlsWire.__new__(TlsWire)
        wire.handshakes = handshakes_of(self.engine)
        wire.choose = self.choose
        wire.http_ms = self.http_ms
        wire.shaking_most = self.shaking_most
        if self.port.proxy_protocol and self.port.listeners:
            wire.preamble = self.port.settings.proxy_protocol
            wire.trusted = self.port.settings.senders.has(&self.client)
        if self.streams.has_tls:
            wire.streams = self.streams
            if self.streams.preamble:
                wire.trusted = (wire.trusted or not wire.preamble) and self.streams.senders.has(&self.client)
            wire.preamble = max(wire.preamble, self.streams.preamble)
        return wire

    cdef int on_accepted(self, Connection connection) except -1:
        return handshakes_of(self.engine).enter(<TlsWire>connection.wire, connection)

    cdef int on_opened(self, Connection connection) except -1:
        cdef TlsWire wire = <TlsWire>connection.wire
        handshakes_of(self.engine).leave(wire)
        if wire.passes:  # from here on it is a plain connection, whose first bytes were read already
            connection.wire = None
            connection.more = False
            self.engine.count_n(G_STREAM_RECEIVED, wire.tls.early_len)
            return connection.keep(wire.tls.early, wire.tls.early_len)
        if self.retired and connection.session is not None:
            return connection.session.retire(self.port, True)
        return 0

    cdef int on_not_opened(self, Connection connection) except -1:
        cdef Engine engine = self.engine
        cdef TlsWire wire = <TlsWire>connection.wire
        handshakes_of(engine).leave(wire)
        if wire.tcp_proxy is not None:
            wire.tcp_proxy.part()
        if wire.tls.open or wire.passes:  # its session has ended it, and told
            return 0
        if connection.why == END_ABORTED:
            if wire.tls.failure == EF_TLS_F_LIMIT:  # for somebody else's sake
                engine.count(G_CONNECTIONS_TOTAL)
                engine.count(G_CONNECTIONS_REFUSED)
            return 0
        engine.count(G_HANDSHAKES_FAILED)
        engine.count(G_HANDSHAKES_FAILED_BY + (0 if connection.why == END_TIMED_OUT else wire.tls.failure or EF_TLS_F_LOCAL))
        return 0


cdef class PendingTlsSession(Session):
    cdef int on_open(self) except -1:
        cdef Connection connection = self.connection
        cdef TlsWire wire = <TlsWire>connection.wire
        cdef PendingTlsSession alive = self  # the connection lets go of it
        cdef Session session
        if wire.tcp_proxy is None:
            session = make_server(self.engine, self.port, True)
        else:
            session = wire.tcp_proxy.down
            take_wire(wire.tcp_proxy, wire)
            wire.tcp_proxy = None
        connection.session = session
        session.connection = connection
        alive.connection = None
        return session.on_open()


cdef int take_wire(TcpProxy tcp_proxy, TlsWire wire) except -1:
    """What is known from its TLS, and from what was said before it."""
    cdef int port = 0
    cdef WireFacts facts
    cdef bytes claimed = wire.claimed(&port)
    if claimed is not None:
        inet_read_bytes(claimed, tcp_proxy.client.host)
        tcp_proxy.client.kind = ADDRESS_INET
        tcp_proxy.client.port = <uint16_t>port
    if not wire.passes:
        memset(&facts, 0, sizeof(facts))
        wire.describe(&facts)
        tcp_proxy.engine.count(G_HANDSHAKES_DONE + 2 * (strcmp(facts.version, b"TLSv1.3") == 0) + (1 if facts.resumed else 0))
    return 0
