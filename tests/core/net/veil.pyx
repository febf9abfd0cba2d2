# A wire for tests that does what TLS does to a socket: it has a handshake, reads ahead, holds back, and says that it ends.

cdef class Veil(Wire):
    """Records of one length byte and so many bytes, each XORed; a handshake of one byte "?" answered by one "!"; the end is a record of
    length 0. It reads ahead, so bytes wait in it that the kernel does not tell of."""
    cdef:
        bint client, asked, said
        int fd
        uint8_t ahead[8192]
        size_t n_ahead
        uint8_t record[256]         # a record that was not taken whole
        size_t record_at, record_bytes

    def __init__(self, bint client):
        self.client = client

    cdef int open(self, int fd) noexcept:
        cdef uint8_t word
        cdef ssize_t n
        self.fd = fd
        if self.client and not self.asked:
            if send(fd, <const char *>b"?", 1, MSG_NOSIGNAL) != 1:
                self.reading = EPOLLOUT
                return WIRE_AGAIN if errno == EAGAIN else WIRE_LOST
            self.asked = True
        self.reading = EPOLLIN
        n = plain_read(fd, &word, 1)
        if n == WIRE_AGAIN:
            return WIRE_AGAIN
        if n != 1 or word != (c"!" if self.client else c"?"):
            self.error = errno if n < 0 else 0
            return WIRE_LOST
        if not self.client:
            send(fd, <const char *>b"!", 1, MSG_NOSIGNAL)
        return 1

    cdef ssize_t read(self, int fd, uint8_t *to, size_t room) noexcept:
        cdef size_t done = 0, i
        cdef ssize_t n
        self.more = False
        while True:
            while self.n_ahead and self.n_ahead >= <size_t>self.ahead[0] + 1:
                if self.ahead[0] == 0:
                    self.more = done > 0
                    return <ssize_t>done
                if done + self.ahead[0] > room:
                    return self.give(to, done, room)
                for i in range(self.ahead[0]):
                    to[done + i] = self.ahead[1 + i] ^ 0x55
                done += self.ahead[0]
                self.n_ahead -= self.ahead[0] + 1
                memmove(self.ahead, self.ahead + self.ahead[0] + 1, self.n_ahead)
            n = plain_read(fd, self.ahead + self.n_ahead, sizeof(self.ahead) - self.n_ahead)
            if n > 0:
                self.n_ahead += n
            elif done:
                return <ssize_t>done
            elif n == 0:
                self.error = 0  # an end without a word
                return WIRE_LOST
            else:
                self.error = errno
                return n

    cdef ssize_t give(self, uint8_t *to, size_t done, size_t room) noexcept:
        """Fill what room is left from the middle of a record."""
        cdef size_t i, n = room - done
        self.more = True
        for i in range(n):
            to[done + i] = self.ahead[1 + i] ^ 0x55
        self.ahead[0] -= <uint8_t>n
        self.n_ahead -= n
        memmove(self.ahead + 1, self.ahead + 1 + n, self.n_ahead - 1)
        return <ssize_t>room

    cdef ssize_t write(self, int fd, const iovec *iov, int n, size_t total) noexcept:
        cdef size_t taken = 0, offset = 0, i
        cdef ssize_t sent
        cdef int piece = 0
        while self.flush() == 1 and taken < total:
            self.record_bytes = total - taken if total - taken < 200 else 200
            self.record[0] = <uint8_t>self.record_bytes
            self.fill(iov, piece, offset)
            self.record_at = 0
            self.held = self.record_bytes + 1
            taken += self.record_bytes
            for i in range(self.record_bytes):
                while offset >= iov[piece].iov_len:
                    piece += 1
                    offset = 0
                offset += 1
        if self.error:
            return WIRE_LOST
        return <ssize_t>taken if taken or not self.held else WIRE_AGAIN

    cdef int flush(self) noexcept:
        """Send the record that is held. 1: it is sent."""
        cdef ssize_t sent
        self.error = 0
        if self.held:
            sent = plain_write_one(self.fd, self.record + self.record_at, self.held)
            if sent == WIRE_LOST:
                self.error = errno
                return WIRE_LOST
            if sent > 0:
                self.record_at += sent
                self.held -= sent
        return 1 if self.held == 0 else WIRE_AGAIN

    cdef void fill(self, const iovec *iov, int piece, size_t offset) noexcept:
        cdef size_t i
        for i in range(self.record_bytes):
            while offset >= iov[piece].iov_len:
                piece += 1
                offset = 0
            self.record[1 + i] = (<const uint8_t *>iov[piece].iov_base)[offset] ^ 0x55
            offset += 1

    cdef int end(self, int fd) noexcept:
        if not self.said:
            if self.flush() != 1:
                return WIRE_LOST if self.error else WIRE_AGAIN
            self.said = True
            self.record[0] = 0
            self.record_at = 0
            self.held = 1
        return self.flush()


cdef ssize_t plain_write_one(int fd, const void *data, size_t n) noexcept:
    cdef iovec iov
    iov.iov_base = <void *>data
    iov.iov_len = n
    return plain_write(fd, &iov, 1, n, 0)
