# Outgoing: the output of a connection: at once what the socket takes, the rest from a queue, as it takes it.
#
# In: gathered pieces. Out: bytes on the wire or the descriptor. Above `buffer_bytes` unsent ones the session must wait; a session that
# sends more all the same is closed. A failed write is only recorded.
# Must never read, or end the session: Connection does.

cdef class Outgoing(Watched):
    def __cinit__(self):
        self.buffer_bytes = OUT_BLOCK * 8

    cdef int cut(self, End why, int error) except -1:
        raise NotImplementedError

    cdef int update(self) except -1:
        raise NotImplementedError

    cdef int sendv(self, iovec *iov, int n, size_t total) except -1:
        """Send all of these pieces, sooner or later. Never raises for the peer's sake; nothing is sent after `end_writes` or a fault."""
        cdef ssize_t sent = 0
        if total == 0 or self.broken or self.fin or self.state != WIRE_OPEN:
            return 0
        if self.out.len == 0:
            sent = self.put(iov, n, total)
            if sent == <ssize_t>total and self.unsent() == 0:
                return 0
            self.took_at = self.reactor.wheel.now
            if sent == <ssize_t>total and self.wire.last:  # held for the end; should that not come, it goes at the end of the turn
                return self.reactor.mark(self)
            if sent == WIRE_LOST:
                return 0
            if sent < 0:
                sent = 0
        elif self.write_paused and self.out.len > self.most_unsent:  # it was told to wait long ago
            return self.cut(END_OVERFLOW, 0)
        if sent < <ssize_t>total:
            queue_append(&self.out, iov, n, sent, total - sent, OUT_BLOCK)
        self.update()
        if self.out.len > self.buffer_bytes and not self.write_paused:
            self.write_paused = True
            self.most_unsent = self.out.len + OUT_MOST
            return self.session.on_writable(False)
        return 0

    cdef int send(self, const void *data, size_t n) except -1:
        cdef iovec iov
        iov.iov_base = <void *>data
        iov.iov_len = n
        return self.sendv(&iov, 1, n)

    cdef int end_writes(self) except -1:
        """No more bytes from us, once those before are sent; the other direction stays open. What is unsent is watched from now on."""
        if self.fin or self.state != WIRE_OPEN:
            return 0
        self.fin = True
        self.unsent_before = <size_t>-1
        self.stalls = 0
        if self.out.len == 0:
            self.finish_write()
        return self.update()

    cdef size_t unsent(self) noexcept:
        """Bytes that were taken from the session and are not the kernel's yet."""
        return self.out.len if self.wire is None else self.out.len + self.wire.held

    cdef size_t untaken(self) noexcept:
        """Bytes that the peer has not acknowledged: unsent ones, and the kernel's. One system call."""
        cdef int queued = 0
        if self.fd >= 0:
            ioctl(self.fd, SIOCOUTQ, &queued)
        return self.unsent() + queued

    cdef bint flushing(self) except -1:
        """There are bytes left to send and the peer takes some now and then. When it has not for FLUSH_STALLS looks, it is cut off."""
        cdef size_t left = self.unsent()
        if left == 0 or self.broken or self.state == WIRE_OVER:
            return False
        self.stalls = 0 if left < self.unsent_before else self.stalls + 1
        self.unsent_before = left
        if self.stalls >= FLUSH_STALLS:
            self.cut(END_STALLED, 0)
        return True

    cdef int watch_flush(self) except -1:
        """A graceful close waits until everything is sent: only as long as the peer takes something."""
        self.flushing()
        if self.state == WIRE_CLOSING:
            return self.reactor.wheel.arm(self, self.reactor.wheel.now + LINGER_MS)
        return 0

    cdef bint has_room(self) noexcept:
        """The socket will take a large read at once. Half of SO_SNDBUF is bookkeeping (socket(7))."""
        cdef int capacity = 0, queued = 0
        cdef socklen_t size = sizeof(capacity)
        if self.state != WIRE_OPEN or self.wire is not None or self.out.len:
            return False
        getsockopt(self.fd, SOL_SOCKET, SO_SNDBUF, &capacity, &size)
        ioctl(self.fd, SIOCOUTQ, &queued)
        return capacity // 2 - queued >= READ_BUFFER

    cdef ssize_t put(self, const iovec *iov, int n, size_t total) noexcept:
        """Hand bytes to the kernel now. WIRE_LOST is noted, and what is queued dropped."""
        cdef ssize_t sent
        if self.wire is None:
            sent = plain_write(self.fd, iov, n, total, MSG_MORE if self.end_follows else 0)
            if sent == WIRE_LOST:
                self.error = errno
        else:
            self.wire.last = self.end_follows
            sent = self.wire.write(self.fd, iov, n, total)
            if sent == WIRE_LOST:
                self.error = self.wire.error
        self.end_follows = False
        if sent == WIRE_LOST:
            self.broken = True
            queue_free(&self.out)
            if self.ended or self.state == WIRE_CLOSING:  # the read side has nothing to tell any more
                try:
                    self.cut(END_RESET, self.error)
                except BaseException:
                    pass
        return sent

    cdef int finish_write(self) except -1:
        if self.fin_sent or self.broken:
            return 0
        if self.wire is not None:
            self.wire.last = True
        if self.wire is None or self.wire.end(self.fd) != WIRE_AGAIN:
            self.fin_sent = True
            shutdown(self.fd, SHUT_WR)
        return 0
