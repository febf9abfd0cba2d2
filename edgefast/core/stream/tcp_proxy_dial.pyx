# A TCP proxy's dial: one try at one endpoint, with the TLS that its cluster had when it began. A cluster that has other TLS by now, or is
# gone, gets not a byte: no TLS is what a cluster says, never what is left of one.

cdef class TcpProxyDial(Dial):
    cdef int take_terms(self, Cluster cluster) except -1:
        self.context = cluster.stream_tls()
        self.sni = cluster.sni
        return 0

    cdef bint keeps_terms(self) except -1:
        """The cluster is there, and has the TLS that the dial began with."""
        cdef Cluster cluster = self.endpoint.cluster
        return cluster.spec is not None and cluster.stream_tls() is self.context and cluster.sni == self.sni

    cdef Wire wire(self):
        if self.context is None:
            return None
        self.speaks = make_client_wire(
            self.endpoint.cluster.engine.handshakes, self.context, self.sni.encode(), self.endpoint.host, self.endpoint.port
        )
        return self.speaks

    cdef int on_connected(self) except -1:
        """The PROXY protocol comes first, before TLS, too. A new socket takes that much at once."""
        cdef uint8_t header[STREAM_PROXY_MOST]
        cdef size_t n
        if not self.endpoint.is_regular() or not self.keeps_terms():
            self.stale = True
            return self.end(END_ABORTED, 0)
        if self.tcp_proxy is not None and self.tcp_proxy.share.proxy_protocol:
            n = write_proxy_header(self.tcp_proxy, header)
            if send(self.fd, header, n, MSG_NOSIGNAL) != <ssize_t>n:
                return self.end(END_RESET, 0)
        return Dial.on_connected(self)

    cdef int call_off(self) except -1:
        """Nobody waits for it any more."""
        self.called_off = True
        return self.end(END_ABORTED, 0) if self.fd >= 0 else 0

    cdef int on_opened(self, Connection connection) except -1:
        self.tcp_proxy = None
        return 0

    cdef int on_failed(self, End why, int error) except -1:
        cdef TcpProxy tcp_proxy = self.tcp_proxy
        self.tcp_proxy = None
        if self.speaks is not None:
            if why == END_WIRE:
                count_tls_failure(self.endpoint.cluster, self.speaks)
            self.endpoint.cluster.engine.handshakes.sessions.forget(self.speaks.backend)
        if self.called_off or tcp_proxy is None or tcp_proxy.dial is not self:
            return 0
        return tcp_proxy.on_dial_failed(why, self.stale)
