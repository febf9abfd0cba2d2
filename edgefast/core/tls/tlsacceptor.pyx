# TLS connections of a port: from its queue through their handshakes to the codec that speaks with clients.
#
# A handshake counts as a connection from accept on: beyond spec.http.maxConnections one is closed before anything is read of it. It has as
# long as a request head may take, at most HANDSHAKE_MS.

cdef class TlsAcceptor(PortAcceptor):
    cdef Session admit(self, const NetAddress *peer):
        cdef Engine engine = self.engine
        cdef Handshakes handshakes = engine.handshakes
        cdef HttpSettings settings = self.port.settings
        cdef Py_ssize_t places = 0
        if settings is not None:
            self.shaking_most = min(max(settings.max_connections // SHAKING_SHARE, SHAKING_LEAST), SHAKING_MOST)
            places = settings.max_connections - <Py_ssize_t>len(engine.connections) - len(handshakes.shaking)
            if places <= 0 and handshakes.make_room(handshakes.shaking, len(handshakes.shaking)):  # who stalls after its hello
                places += 1
            if places > HANDSHAKES_MOST:
                places = HANDSHAKES_MOST
            self.handshake_ms = settings.head_timeout if settings.head_timeout < HANDSHAKE_MS else HANDSHAKE_MS
        if places <= 0 or not handshakes.make_room(handshakes.silent, places):
            engine.count(G_CONNECTIONS_TOTAL)
            engine.count(G_CONNECTIONS_REFUSED)
            return None
        return H1Server.__new__(H1Server, engine, self.port, True)

    cdef Wire wire(self):
        cdef TlsWire wire = TlsWire.__new__(TlsWire)
        wire.handshakes = self.engine.handshakes
        wire.choose = self.choose
        wire.shaking_most = self.shaking_most
        if self.port.proxy_protocol:
            wire.preamble = self.port.settings.proxy_protocol
        return wire

    cdef int on_accepted(self, Connection connection) except -1:
        return self.engine.handshakes.enter(<TlsWire>connection.wire, connection)

    cdef int on_opened(self, Connection connection) except -1:
        self.engine.handshakes.leave(<TlsWire>connection.wire)
        return connection.session.retire(self.port) if self.retired and connection.session is not None else 0

    cdef int on_not_opened(self, Connection connection) except -1:
        cdef Engine engine = self.engine
        cdef TlsWire wire = <TlsWire>connection.wire
        engine.handshakes.leave(wire)
        if wire.tls.open:  # its session has ended it, and told
            return 0
        if connection.why == END_ABORTED:
            if wire.tls.failure == EF_TLS_F_LIMIT:  # for somebody else's sake
                engine.count(G_CONNECTIONS_TOTAL)
                engine.count(G_CONNECTIONS_REFUSED)
            return 0
        engine.count(G_HANDSHAKES_FAILED)
        engine.count(G_HANDSHAKES_FAILED_BY + (0 if connection.why == END_TIMED_OUT else wire.tls.failure or EF_TLS_F_LOCAL))
        return 0
