# Stream acceptor: connections of a TCP port, from its accept queue to TCP proxies.

cdef class StreamAcceptor(Acceptor):
    cdef Session admit(self, const NetAddress *peer):
        cdef StreamListener listener = self.port.only
        cdef TcpProxy tcp_proxy
        if listener is None:
            listener = self.listener_at()
        if listener is None:
            self.engine.count(G_STREAM_REFUSED + REFUSED_ROUTE)
            return None
        tcp_proxy = TcpProxy.__new__(TcpProxy, self.engine, listener)
        return tcp_proxy.down

    cdef StreamListener listener_at(self):
        """The listener at the local address of the connection: those of the port have other addresses now."""
        cdef sockaddr_storage name
        cdef socklen_t length = sizeof(name)
        cdef NetAddress local
        if getsockname(self.taken, <sockaddr *>&name, &length) < 0:
            return None
        address_read(&name, &local)
        key = stream_tables_of(self.engine).key_at(self.port.number, &local)
        return stream_tables_of(self.engine).port(key).only if key is not None else None

    cdef void on_turned_away(self) noexcept:
        self.engine.count(G_STREAM_REFUSED + REFUSED_LIMIT)

    cpdef int retire(self) except -1:
        """Stop, for good: the port is served otherwise. What has begun goes on, as tunnels of HTTP do."""
        return self.stop()
