# Plain connections of a port: from its queue to the codec that speaks with clients.

cdef class PortAcceptor(Acceptor):
    cdef Session admit(self, const NetAddress *peer):
        return make_server(self.engine, self.port, False)

    cdef void on_turned_away(self) noexcept:
        self.engine.count(G_CONNECTIONS_TOTAL)
        self.engine.count(G_CONNECTIONS_REFUSED)

    cpdef int retire(self) except -1:
        """Stop, for good: the port is served under another rule. Connections made under this one, and handshakes under way, end with the
        answer that is under way; those of HTTP/2 get GOAWAY."""
        self.retired = True
        self.stop()
        return self.engine.release_idle(self.port)
