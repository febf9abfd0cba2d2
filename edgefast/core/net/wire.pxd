# Wire: the layer between a socket and the bytes of its session; None: no layer.

# What a wire could not do, instead of a number of bytes.
cdef enum WireFailure:
    WIRE_AGAIN = -1     # not now: `reading` or `writing` says which event to wait for
    WIRE_LOST = -2      # never again: `error` says why


# What is told of a wire that is open; texts live as long as the process.
cdef struct WireFacts:
    const char *version     # NULL: there is nothing to tell
    const char *cipher
    const char *group       # of the key exchange
    bint resumed            # of a session before
    bint alpn_h2            # HTTP/2 was agreed on


# The certificate that a client has shown, as far as headers tell backends of it.
cdef class ClientCertificate:
    cdef:
        bint only_issuer        # it is not verified because its issuer is unknown, and for nothing else
        bint verified           # an authority of the listener has issued it
        bytes result            # b"SUCCESS", b"FAILED:" and why, b"NONE"
        bytes der               # None: there is none, or it is too large
        bytes subject, issuer   # distinguished names as text of RFC 2253, ASCII
        list uris, dns          # subjectAltNames
        tuple authorities       # that have verified it (TlsContext.authorities)


cdef class Wire:
    cdef:
        uint32_t reading        # EPOLLIN or EPOLLOUT: what the last read, or `open`, waits for
        uint32_t writing        # the same of the last write
        int error               # errno of WIRE_LOST; 0: what the peer sent is not this protocol
        bint more               # the next read gives bytes or the end without any event
        size_t held             # bytes it has taken from the session and not been able to send
        bint last               # of the next write: `end` follows in the same callback. Afterwards: it is held for that, not for want of room.
                                # Of `end`: shutdown(2) follows at once, and may share a segment with it

    cdef int open(self, int fd) noexcept
    cdef ssize_t read(self, int fd, uint8_t *to, size_t room) noexcept
    cdef ssize_t write(self, int fd, const iovec *iov, int n, size_t total) noexcept
    cdef int end(self, int fd) noexcept
    cdef bytes sni(self)
    cdef bytes claimed(self, int *port)
    cdef void describe(self, WireFacts *facts) noexcept
    cdef ClientCertificate client_certificate(self)
