# A TLS connection on a transport of uvloop, which holds the descriptor, the out-queue and the protocol of TLS.
#
# In: the transport's callbacks. Out: the same calls on the session as any other connection's. A unix socket's or a plain one never is one
# of these.

cdef class TransportConnection(Connection):
    def __cinit__(self, Engine engine, Session session):
        self.engine = engine
        self.reactor = engine.reactor
        self.session = session

    # --- what the loop tells -----------------------------------------------------------------------------------------

    def connection_made(self, transport):
        self.transport = transport
        self.reactor.wheel.refresh()
        self.state = WIRE_OPEN
        self.session.connection = self
        self.session.on_open()

    def get_buffer(self, hint):
        return self.engine.read_view

    def buffer_updated(self, Py_ssize_t n):
        self.reactor.wheel.refresh()
        if not self.closed:
            self.hand_on(self.reactor.buffer.data, n)

    def eof_received(self):
        if self.session is not None and not self.closed:
            self.session.on_eof()
        return False

    def connection_lost(self, exc):
        cdef Session session = self.session
        self.state = WIRE_OVER
        self.closed = True
        self.disarm()
        self.session = None  # the two hold each other
        session.on_lost()
        self.disarm()
        self.transport = None
        self.release_memory()

    def pause_writing(self):
        self.write_paused = True
        if self.session is not None:
            self.session.on_writable(False)

    def resume_writing(self):
        self.write_paused = False
        if self.session is not None:
            self.session.on_writable(True)

    cdef int on_turn_end(self) except -1:
        if self.again:
            self.again = False
            if self.pending.len and not self.write_paused:
                self.resume()
                self.consume_pending()
        return 0

    # --- what the session asks ---------------------------------------------------------------------------------------

    cdef int sendv(self, iovec *iov, int n, size_t total) except -1:
        cdef uint8_t *to
        cdef int i
        if self.closed or total == 0:
            return 0
        data = PyBytes_FromStringAndSize(NULL, total)
        to = <uint8_t *>PyBytes_AS_STRING(data)
        for i in range(n):
            memcpy(to, iov[i].iov_base, iov[i].iov_len)
            to += iov[i].iov_len
        if self.unsent() == 0 and not self.write_paused:
            self.transport.set_write_buffer_limits(self.buffer_bytes)
        self.spilled = True
        self.transport.write(data)
        return 0

    cdef size_t unsent(self) noexcept:
        if self.transport is None or not self.spilled:
            return 0
        try:
            left = self.transport.get_write_buffer_size()
        except BaseException:
            left = 0
        if left == 0:
            self.spilled = False
        return left

    cdef int end_writes(self) except -1:
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.unsent_before = <size_t>-1
        self.stalls = 0
        return 0

    cdef int pause(self) except -1:
        if not self.read_paused and not self.closed:
            self.read_paused = True
            self.transport.pause_reading()
        return 0

    cdef int resume(self) except -1:
        if self.read_paused and not self.closed:
            self.read_paused = False
            self.transport.resume_reading()
        return 0

    cdef int shut(self, bint abort) except -1:
        if self.closed:
            return 0
        self.disarm()
        self.state = WIRE_CLOSING
        self.closed = True
        if abort:
            self.transport.abort()
            return 0
        if self.unsent():
            self.unsent_before = <size_t>-1
            self.stalls = 0
            self.watch_flush()
        self.transport.close()
        return 0

    cdef int cut(self, End why, int error) except -1:
        if self.state == WIRE_OVER or self.transport is None:
            return 0
        self.why = why
        self.error = error
        self.state = WIRE_CLOSING
        self.closed = True
        self.transport.abort()
        return 0

    cdef int watch_flush(self) except -1:
        if self.flushing():
            self.reactor.wheel.arm(self, self.reactor.wheel.now + LINGER_MS)
        return 0

    cdef int update(self) except -1:
        return 0

    cdef bint has_room(self) noexcept:
        return False

    cdef bint is_quiet(self) noexcept:
        return True

    cdef int learn_end(self, bint local, NetAddress *out) except -1:
        memset(out, 0, sizeof(NetAddress))
        name = self.transport.get_extra_info("sockname" if local else "peername")
        if isinstance(name, tuple) and inet_read_bytes(name[0].partition("%")[0].encode(), out.host):
            out.kind = ADDRESS_INET
            out.port = name[1]
        return 0

    cdef bytes sni(self):
        name = getattr(self.transport.get_extra_info("ssl_object"), "sni", "")
        return name.lower().encode() if name else None
