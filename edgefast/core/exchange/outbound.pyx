# Outbound: the stream to a backend, as an UpstreamUser (an exchange's attempt, a mirror) and a pool know it.
#
# The user calls begin, then write. The codec calls on_response_*, on_up_writable, and one of on_response_end and on_up_lost. After the
# latter the stream no longer belongs to the user. A session with many streams calls on_response_flush of each user before the next user's
# events: client output is gathered in one place. The codec alone knows framing, the connection, and its reuse.

cdef class Outbound(Session):
    cdef int begin(self, UpstreamUser user, unsigned method, bint unsized, uint64_t announced, bytes asked, bint takes_trailers) except -1:
        """A request follows. `unsized`: its body has no length in its head; else it is `announced` bytes long. `asked`: the protocols it would switch to; None: none.
        `takes_trailers`: its client said so (TE)."""
        raise NotImplementedError

    cdef int write(self, Out *head, iovec *iov, int n, size_t total, bint end, Out *trailers) except -1:
        """Head (or NULL) and body pieces in one write. The head is HTTP/1.1 text without the lines of framing and of the connection, and
        without the empty line at its end. `trailers`, of use with `end`: "name: value" lines, which go where the backend can have them."""
        raise NotImplementedError

    cdef int pause(self) except -1:
        """No more of the response for now."""
        raise NotImplementedError

    cdef int resume(self) except -1:
        raise NotImplementedError

    cdef bint has_room(self) noexcept:
        """A large piece of the request can be sent at once."""
        raise NotImplementedError

    cdef size_t unsent(self) noexcept:
        """Bytes that were written and that the backend has not taken, as far as they are kept here."""
        raise NotImplementedError

    cdef int drop(self, Cut why) except -1:
        """The user is done with it, whatever its state, and hears no more of it."""
        raise NotImplementedError

    cdef int hang_up(self) except -1:
        """As `drop`, after what has been written is sent: the end of a tunnel."""
        raise NotImplementedError

    cdef int end_tunnel(self) except -1:
        """No more bytes for a tunnel, once those before are sent; what the backend says goes on."""
        raise NotImplementedError

    cdef bytes local_address(self):
        """Our end, "10.0.0.1:40000"; b"" of a unix socket."""
        raise NotImplementedError

    cdef bint is_open(self) noexcept:
        """Made, and not closed since."""
        raise NotImplementedError

    cdef bint is_current(self) noexcept:
        """Made with the settings that the cluster has now."""
        raise NotImplementedError

    cdef bint is_quiet(self) noexcept:
        """Nothing has come while it was idle, not even its end."""
        raise NotImplementedError

    cdef int park(self) except -1:
        """No user: back to the pool."""
        raise NotImplementedError
