# Wire: reads and gathered writes on a descriptor. TLS is one; a plain socket has none and uses inline calls.
#
# In: a non-blocking descriptor. Out: numbers of bytes, 0 for the end of the peer's data, or a WireFailure. Nothing here raises, calls back,
# or knows the reader. A wire may have bytes, or the end, without an epoll event: `more` reports that after each read, and the socket reads
# again in the next round.

cdef class ClientCertificate:
    pass


cdef class Wire:
    def __cinit__(self):
        self.reading = EPOLLIN
        self.writing = EPOLLOUT

    cdef int open(self, int fd) noexcept:
        """Before the first byte of the session: a handshake, step by step. 1: open. Else a WireFailure."""
        return 1

    cdef ssize_t read(self, int fd, uint8_t *to, size_t room) noexcept:
        """Bytes for the session; 0: the peer has ended what it sends, and said so where the protocol has words for that."""
        self.error = 0
        return WIRE_LOST

    cdef ssize_t write(self, int fd, const iovec *iov, int n, size_t total) noexcept:
        """Take bytes of the session, from the front, after what is held has been sent. None (n is 0): only send what is held."""
        self.error = 0
        return WIRE_LOST

    cdef int end(self, int fd) noexcept:
        """No more bytes follow: say so, once. 1: it is said and sent. WIRE_AGAIN: it is among what is held; asked again when writable."""
        return 1

    cdef bytes sni(self):
        """The name that the peer asked for, lower case; None: it has not."""
        return None

    cdef bytes claimed(self, int *port):
        """The address of the peer as the PROXY protocol has it, before the first byte of the session; None: nobody has said."""
        return None

    cdef void describe(self, WireFacts *facts) noexcept:
        """Of an open one. What is not told stays as it is."""

    cdef ClientCertificate client_certificate(self):
        """Of an open one: what its client has shown; None: it was not asked for a certificate."""
        return None


cdef inline ssize_t plain_read(int fd, uint8_t *to, size_t room) noexcept:
    """The same on a socket; errno says why WIRE_LOST."""
    cdef ssize_t n = recv(fd, to, room, 0)
    if n >= 0:
        return n
    return WIRE_AGAIN if errno == EAGAIN or errno == EINTR else WIRE_LOST


cdef ssize_t plain_write(int fd, const iovec *iov, int n, size_t total, int flags) noexcept:
    """flags: MSG_MORE, when what follows at once is to share a segment with this; or 0."""
    cdef ssize_t sent
    cdef msghdr message
    cdef uint8_t small[SMALL_WRITE]
    cdef uint8_t *to = small
    cdef int i
    if n == 1:
        sent = send(fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL | flags)
    elif total <= sizeof(small):  # copying a little is cheaper than sendmsg
        for i in range(n):
            memcpy(to, iov[i].iov_base, iov[i].iov_len)
            to += iov[i].iov_len
        sent = send(fd, small, total, MSG_NOSIGNAL | flags)
    else:
        memset(&message, 0, sizeof(message))
        message.msg_iov = <iovec *>iov
        message.msg_iovlen = n
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | flags)
    if sent >= 0:
        return sent
    return WIRE_AGAIN if errno == EAGAIN or errno == EINTR else WIRE_LOST
