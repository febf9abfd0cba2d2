# A pool's dial: a connection to an endpoint that somebody has asked for. By the time it is there, it may be for nobody, or made with
# settings that its cluster has no more.

cdef class PoolDial(Dial):
    cdef Wire wire(self):
        if self.up.tls is None:
            return None
        self.speaks = make_client_wire(
            self.pool.engine.handshakes, self.up.tls, self.up.sni.encode(), self.endpoint.host, self.endpoint.port
        )
        return self.speaks

    cdef int on_opened(self, Connection connection) except -1:
        return self.pool.on_dialed(self.user, self.ticket, self.up)

    cdef int on_failed(self, End why, int error) except -1:
        if self.speaks is not None:
            self.pool.engine.handshakes.sessions.forget(self.speaks.backend)
        if not self.up.opened:
            self.pool.connections -= 1
        if why == END_ABORTED:  # the engine closes
            self.pool.done(self.endpoint)
            return 0
        return self.pool.on_dial_failed(
            self.user, self.ticket, self.endpoint,
            UP_CONNECT_TIMEOUT if why == END_TIMED_OUT else UP_TLS if why == END_WIRE else UP_CONNECT,
        )
