# One connection: bytes out with as few kernel calls and copies as the kernel allows, bytes kept when they are not complete.
#
# Plain connections are written with send(2)/sendmsg(2) straight from where the bytes lie; only what the socket does not take is
# copied and handed to the transport, which then owns the order until its buffer is empty again. TLS always goes through the
# transport. A failed write is only noted: the read side brings the reason (an early answer before a reset must not be lost).

cdef class Connection(Timer):
    def __cinit__(self):
        self.fd = -1

    def __dealloc__(self):
        self.release_memory()

    cdef int attach(self, object transport, bint tls) except -1:
        self.transport = transport
        self.tls = tls
        if not tls:
            self.fd = transport.get_extra_info("socket").fileno()
        return 0

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
        free(self.partial)
        self.partial = NULL

    cdef void keep_witness(self) noexcept:
        """The message is over and the parser is as new: the next one may use it."""
        cdef Engine engine = self.engine
        if self.witness is None:
            return
        if self.witness.request and engine.idle_request_witness is None:
            engine.idle_request_witness = self.witness
        elif not self.witness.request and engine.idle_response_witness is None:
            engine.idle_response_witness = self.witness
        else:
            self.witness.let_go()
        self.witness = None

    cdef void drop_witness(self) noexcept:
        if self.witness is not None:
            self.witness.let_go()
            self.witness = None

    def get_buffer(self, hint):
        if self.tls:
            return self.engine.read_view
        self.engine.read_buffer.size = READ_BUFFER if self.bulk else READ_SMALL
        return self.engine.read_buffer

    def pause_writing(self):
        self.write_paused = True

    def resume_writing(self):
        self.write_paused = False
