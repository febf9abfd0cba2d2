# Plain connections of a port: from its queue to the codec that speaks with clients.

cdef class PortAcceptor(Acceptor):
    cdef Session admit(self, const NetAddress *peer):
        return make_server(self.engine, self.port, False)

    cdef void on_turned_away(self) noexcept:
        self.engine.count(G_CONNECTIONS_TOTAL)
        self.engine.count(G_CONNECTIONS_REFUSED)

    cpdef int retire(self) except -1:
        """Stop, for good: the port is served under another rule. Connections made under this one, and handshakes under way, end with the
        answer that is under way; those of HTTP/2 get GOAWAY. What is left after HttpSettings.tls_drain is reset."""
        self.retired = True
        self.stop()
        self.engine.release_idle(self.port)
        return end_outdated_later(self.engine, self.port)


cdef int64_t leave_by(Engine engine, PortTable port) noexcept:
    """When a connection that begins to be outdated now has to be gone."""
    return engine.wheel.now + (port.settings.tls_drain if port.settings is not None else 0)


cdef int end_outdated_later(Engine engine, PortTable port) except -1:
    engine.loop.call_later((leave_by(engine, port) - engine.wheel.now) / 1000, end_outdated, engine)
    return 0


def end_outdated(Engine engine):
    """Reset connections that have had their time under a rule that is no more."""
    cdef Session session
    cdef int64_t now, first = 0
    engine.wheel.refresh()
    now = engine.wheel.now
    for session in list(engine.connections):
        if session.leave_by == 0:
            continue
        if session.leave_by <= now:
            session.stop(True)
        elif first == 0 or session.leave_by < first:
            first = session.leave_by
    if first and not engine.closing:
        engine.loop.call_later((first - now) / 1000, end_outdated, engine)
