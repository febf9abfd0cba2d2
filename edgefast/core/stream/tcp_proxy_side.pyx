# The two sides of a TCP proxy: each is the session of a connection, and gives what comes to the other one.

cdef class TcpProxySide(Session):
    cdef bint relays(self) noexcept:
        return self.tcp_proxy is not None and self.tcp_proxy.state == TCP_PROXY_OPEN

    cdef int pass_on(self, const uint8_t *data, size_t n) except -1:
        """What has come, for the other side."""
        raise NotImplementedError

    cdef bint takes_bulk(self) noexcept:
        return self.relays() and self.other.connection.has_room()

    cdef int on_writable(self, bint writable) except -1:
        """This side takes no more, or does again: the other one waits, or goes on."""
        if not self.relays() or self.other.connection is None:
            return 0
        if writable:
            return self.other.connection.resume()
        self.other.connection.pause()
        return self.tcp_proxy.watch()

    cdef int64_t given(self) noexcept:
        """Bytes that were passed on to it."""
        return 0

    cdef bint look(self, int64_t now) noexcept:
        """Whether it has taken some since it was looked at last. What TLS adds to them counts as not taken."""
        cdef size_t left = self.connection.untaken()
        cdef int64_t taken = self.given() - <int64_t>left
        cdef bint took = taken > self.taken
        self.waits = left != 0
        if took:
            self.taken = taken
        if took or not self.waits:
            self.took_at = now
        return took

    cdef int on_eof(self) except -1:
        return self.tcp_proxy.on_side_ended(self) if self.tcp_proxy is not None else self.connection.shut(True)

    cdef int on_hangup(self) except -1:
        """It is gone in both directions while it is not read: what is still there to read is, while the other one takes it."""
        if self.relays():
            return 0 if self.other.connection.write_paused else self.connection.resume()
        return self.connection.shut(True)

    cdef int on_lost(self) except -1:
        return self.tcp_proxy.on_side_lost(self, self.connection) if self.tcp_proxy is not None else 0


cdef class TcpProxyDownstream(TcpProxySide):
    cdef int64_t given(self) noexcept:
        return <int64_t>self.tcp_proxy.sent

    cdef int on_open(self) except -1:
        return self.tcp_proxy.begin()

    cdef int retire(self, object port, bint outdated) except -1:
        return self.tcp_proxy.retire((<PortTable>port).key) if self.tcp_proxy is not None and port is not None else 0

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        cdef TcpProxy tcp_proxy = self.tcp_proxy
        if tcp_proxy is None or tcp_proxy.state >= TCP_PROXY_LEFT:
            return n
        if tcp_proxy.state == TCP_PROXY_OPEN:
            self.pass_on(data, n)
            return n
        return tcp_proxy.on_preamble(data, n) if tcp_proxy.state == TCP_PROXY_PREAMBLE else 0

    cdef int pass_on(self, const uint8_t *data, size_t n) except -1:
        self.tcp_proxy.received += n
        self.other.connection.send(data, n)
        return self.tcp_proxy.touch() if self.relays() else 0


cdef class TcpProxyUpstream(TcpProxySide):
    cdef int64_t given(self) noexcept:
        return <int64_t>self.tcp_proxy.received

    cdef int on_open(self) except -1:
        if self.tcp_proxy is None or self.tcp_proxy.state != TCP_PROXY_CONNECTING:  # the client is gone
            return self.connection.shut(True)
        return self.tcp_proxy.on_connected()

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        if self.relays():
            self.pass_on(data, n)
        return n

    cdef int pass_on(self, const uint8_t *data, size_t n) except -1:
        self.tcp_proxy.sent += n
        self.other.connection.send(data, n)
        return self.tcp_proxy.touch() if self.relays() else 0
