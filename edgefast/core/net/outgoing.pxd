# Outgoing: the output of a connection.

cdef enum ConnectionState:
    WIRE_NEW = 0
    WIRE_OPENING = 1        # the wire is at its handshake
    WIRE_OPEN = 2
    WIRE_CLOSING = 3        # what is queued goes out, nothing is read, the session hears of the end only
    WIRE_OVER = 4           # the descriptor is closed; on_lost follows or has been


cdef class Outgoing(Watched):
    cdef:
        Session session         # None when it is lost
        Wire wire               # None: plain
        ConnectionState state
        End why                 # WIRE_OVER: how
        int error               # errno, where one is the reason
        size_t buffer_bytes     # unsent bytes above which the session is asked to wait
        size_t most_unsent      # bytes at which it is cut, after it was asked to
        bint write_paused       # the session is asked to wait
        bint ended              # the peer has sent its last byte
        bint broken             # a write failed; the read side tells the rest
        bint fin                # the session has sent its last byte
        bint fin_sent
        bint end_follows        # behind what is sent next, in the same callback: both go in one segment
        ByteQueue out           # bytes not sent
        int64_t took_at         # ms of the wheel: since then the peer has read none of the unsent bytes
        size_t unsent_before    # when it was looked at last whether the peer takes anything
        int stalls              # looks without progress

    cdef int cut(self, End why, int error) except -1
    cdef int sendv(self, iovec *iov, int n, size_t total) except -1
    cdef int send(self, const void *data, size_t n) except -1
    cdef int end_writes(self) except -1
    cdef size_t unsent(self) noexcept
    cdef size_t untaken(self) noexcept
    cdef bint flushing(self) except -1
    cdef bint has_room(self) noexcept
    cdef int update(self) except -1
    cdef ssize_t put(self, const iovec *iov, int n, size_t total) noexcept
    cdef int finish_write(self) except -1
    cdef int watch_flush(self) except -1
