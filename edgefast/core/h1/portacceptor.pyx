# Port acceptor: plain connections of a port, from its accept queue to the codec for clients.

cdef class PortAcceptor(Acceptor):
    cdef Session admit(self, const NetAddress *peer):
        return make_server(self.engine, self.port, False)

    cdef void on_turned_away(self) noexcept:
        self.engine.count(G_CONNECTIONS_TOTAL)
        self.engine.count(G_CONNECTIONS_REFUSED)

    cpdef int retire(self) except -1:
        """Stop, for good: the port is served under another rule. Connections made under this one, and handshakes under way, end with the
        answer that is under way; those of HTTP/2 get GOAWAY. Connections that are open after HttpSettings.tls_drain are reset."""
        self.retired = True
        self.stop()
        return self.engine.release_idle(self.port, True)


cdef class DrainTimer(Timer):
    cdef int on_deadline(self, int64_t now) except -1:
        return self.session.stop(True)


cdef int start_drain_timer(Engine engine, PortTable port, Session session) except -1:
    """Reset a connection of an earlier TLS rule after the port's tls_drain. A further change of the rule does not extend the time."""
    cdef DrainTimer leaving
    if session.leaving is not None:
        return 0
    session.leaving = leaving = DrainTimer.__new__(DrainTimer)
    leaving.session = session
    return engine.wheel.arm(leaving, engine.wheel.now + (port.settings.tls_drain if port.settings is not None else 0))


cdef int move_session(H1Server session) except -1:
    """The listeners of its port have other addresses now: it gets those at its local address, for one more request. Not if they ask more of
    clients before the first request than the old ones."""
    cdef PortTable port
    cdef NetAddress local
    session.connection.learn_end(True, &local)
    key = session.engine.stream_tables.key_at(session.port.number, &local)
    if key is None:
        return 0
    port = session.engine.tables.port(key)
    if not port.listeners or port.proxy_protocol != session.port.proxy_protocol or (session.peer.tls and port.shake != session.port.shake):
        return 0
    session.closing = True
    if session.peer.placed:
        release_slot(session.peer, session.connection)
        port.open += 1  # until its answer is sent
        session.peer.placed = True
    session.port = session.peer.port = port
    return 0


cdef int move_drain_timer(Session first, Session second) except -1:
    """Another session serves the connection from now on; its deadline stays."""
    if first.leaving is not None:
        (<DrainTimer>first.leaving).session = second
        second.leaving, first.leaving = first.leaving, None
    return 0


cdef int forget_connection(Engine engine, Session session) except -1:
    """A client's connection is lost."""
    engine.connections.pop(session, None)
    if session.leaving is not None:
        engine.wheel.disarm(session.leaving)
        session.leaving = None
    return 0
