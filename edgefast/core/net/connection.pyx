# One connection: bytes out with as few kernel calls and copies as the kernel allows, bytes kept when they are not complete.
#
# Plain connections are written with send(2)/sendmsg(2) straight from where the bytes lie; only what the socket does not take is
# copied and handed to the transport, which then owns the order until its buffer is empty again. TLS always goes through the
# transport. A failed write is only noted: the read side brings the reason (an early answer before a reset must not be lost).

cdef class Connection(Timer):
    def __cinit__(self, Engine engine, Session session, bint tls, int received_cell):
        self.engine = engine
        self.session = session
        self.tls = tls
        self.received_cell = received_cell
        self.buffer_bytes = 32768
        self.fd = -1

    def __dealloc__(self):
        self.release_memory()

    # --- what the loop tells -----------------------------------------------------------------------------------------

    def connection_made(self, transport):
        cdef Session session = self.session
        self.transport = transport
        sock = transport.get_extra_info("socket") if not self.tls else None
        if sock is not None:
            self.fd = sock.fileno()
        session.wire = self
        session.on_open()

    def get_buffer(self, hint):
        if self.tls:
            return self.engine.read_view
        self.engine.read_buffer.size = READ_BUFFER if self.bulk else READ_SMALL
        return self.engine.read_buffer

    def buffer_updated(self, Py_ssize_t n):
        cdef Engine engine = self.engine
        cdef const uint8_t *data = engine.read_data
        cdef ssize_t used
        cdef Session session = self.session
        engine.wheel.refresh()
        engine.count_n(self.received_cell, n)
        if self.closed:
            return
        self.bulk = n >= READ_SMALL and not self.read_paused and session.takes_bulk()
        if self.pending_len:
            self.keep(data, n)
            used = session.received(self.pending, self.pending_len)
            self.consume(used)
        else:
            used = session.received(data, n)
            if used < n:
                self.keep(data + used, n - used)
        if self.pending_len >= PIPELINE_LIMIT and session.holds_back():
            self.pause()

    cdef int schedule(self) except -1:
        """Give the session what is kept once more, soon."""
        if not self.scheduled:
            self.scheduled = True
            self.engine.loop.call_soon(self._go_on)
        return 0

    def _go_on(self):
        cdef ssize_t used
        cdef Session session = self.session
        self.scheduled = False
        if self.closed or not self.pending_len or self.write_paused:
            return
        used = session.received(self.pending, self.pending_len)
        self.consume(used)
        if self.pending_len >= PIPELINE_LIMIT and session.holds_back():
            self.pause()
        else:
            self.resume()

    def eof_received(self):
        cdef Session session = self.session
        if session is not None:
            session.on_eof()
        return False

    def connection_lost(self, exc):
        cdef Session session = self.session
        self.closed = True
        self.engine.wheel.disarm(self)
        self.session = None  # the two hold each other
        session.on_lost()
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

    cdef int on_deadline(self, int64_t now) except -1:
        cdef Session session = self.session
        if self.closed:
            return self.watch_flush()
        return session.on_deadline(now)

    # --- bytes out ---------------------------------------------------------------------------------------------------

    cdef int sendv(self, iovec *iov, int n, size_t total) except -1:
        cdef ssize_t sent = 0
        cdef msghdr message
        cdef size_t skip, length
        cdef uint8_t *to
        cdef uint8_t small[SMALL_WRITE]
        cdef int i
        if self.closed or self.broken or total == 0:
            return 0
        if self.spilled and self.transport.get_write_buffer_size() == 0:
            self.spilled = False
        if self.fd >= 0 and not self.spilled:
            if n == 1:
                sent = send(self.fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
            elif total <= sizeof(small):  # copying a little is cheaper than sendmsg
                to = small
                for i in range(n):
                    memcpy(to, iov[i].iov_base, iov[i].iov_len)
                    to += iov[i].iov_len
                sent = send(self.fd, small, total, MSG_NOSIGNAL | MSG_DONTWAIT)
            else:
                memset(&message, 0, sizeof(message))
                message.msg_iov = iov
                message.msg_iovlen = n
                sent = sendmsg(self.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
            if sent == <ssize_t>total:
                return 0
            if sent < 0:
                if errno != EAGAIN and errno != EINTR:
                    self.broken = True
                    return 0
                sent = 0
        rest = PyBytes_FromStringAndSize(NULL, total - sent)
        to = <uint8_t *>PyBytes_AS_STRING(rest)
        skip = sent
        for i in range(n):
            length = iov[i].iov_len
            if skip >= length:
                skip -= length
                continue
            memcpy(to, <uint8_t *>iov[i].iov_base + skip, length - skip)
            to += length - skip
            skip = 0
        if not self.spilled:
            self.spilled = True
            if not self.write_paused:
                self.transport.set_write_buffer_limits(self.buffer_bytes)
        self.transport.write(rest)
        return 0

    cdef int send(self, const void *data, size_t n) except -1:
        cdef iovec iov
        iov.iov_base = <void *>data
        iov.iov_len = n
        return self.sendv(&iov, 1, n)

    cdef int end_writes(self) except -1:
        """No more bytes from us, once those before are sent; the other direction stays open. What is unsent is watched from now on."""
        if self.fd >= 0 and not self.spilled:
            shutdown(self.fd, SHUT_WR)
        elif self.transport.can_write_eof():
            self.transport.write_eof()
        self.unsent = <size_t>-1
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
        """Close after what is queued has been sent, or at once with a reset."""
        if self.closed:
            return 0
        self.closed = True
        if abort:
            self.transport.abort()
            return 0
        if self.spilled:
            self.unsent = <size_t>-1
            self.stalls = 0
            self.engine.wheel.disarm(self)
            self.watch_flush()
        self.transport.close()
        return 0

    cdef bint flushing(self) except -1:
        """There are bytes left to send and the peer takes some now and then. When it has not for FLUSH_STALLS looks, it is cut off."""
        cdef size_t left
        if self.transport is None or not self.spilled:
            return False
        left = self.transport.get_write_buffer_size()
        if left == 0:
            return False
        self.stalls = 0 if left < self.unsent else self.stalls + 1
        self.unsent = left
        if self.stalls >= FLUSH_STALLS:
            self.closed = True
            self.transport.abort()
        return True

    cdef int watch_flush(self) except -1:
        """A graceful close waits until everything is sent: only as long as the peer takes something."""
        if self.flushing():
            self.engine.wheel.arm(self, self.engine.wheel.now + LINGER_MS)
        return 0

    cdef bint has_room(self) noexcept:
        """The socket will take a large read at once. Half of SO_SNDBUF is bookkeeping (socket(7))."""
        cdef int capacity = 0, queued = 0
        cdef socklen_t size = sizeof(capacity)
        if self.fd < 0 or self.spilled:
            return False
        getsockopt(self.fd, SOL_SOCKET, SO_SNDBUF, &capacity, &size)
        ioctl(self.fd, SIOCOUTQ, &queued)
        return capacity // 2 - queued >= READ_BUFFER

    cdef int arm(self, int64_t ms) except -1:
        """The session's deadline is `ms` from now."""
        return self.engine.wheel.arm(self, self.engine.wheel.now + ms)

    cdef void disarm(self) noexcept:
        self.engine.wheel.disarm(self)

    # --- bytes that are kept -----------------------------------------------------------------------------------------

    cdef int keep(self, const uint8_t *data, size_t n) except -1:
        cdef size_t need = self.pending_len + n
        cdef size_t cap
        cdef void *grown
        if n == 0:
            return 0
        if need > self.pending_cap:
            cap = self.pending_cap * 2 if self.pending_cap else 1024
            while cap < need:
                cap *= 2
            grown = realloc(self.pending, cap)
            if grown == NULL:
                raise MemoryError
            self.pending = <uint8_t *>grown
            self.pending_cap = cap
        memcpy(self.pending + self.pending_len, data, n)
        self.pending_len = need
        return 0

    cdef void consume(self, size_t n) noexcept:
        """Drop the first n pending bytes; memory goes back when nothing is left."""
        if n == 0:
            return
        self.pending_len -= n
        if self.pending_len == 0:
            free(self.pending)
            self.pending = NULL
            self.pending_cap = 0
        else:
            memmove(self.pending, self.pending + n, self.pending_len)

    cdef void release_memory(self) noexcept:
        free(self.pending)
        self.pending = NULL
        self.pending_len = self.pending_cap = 0
