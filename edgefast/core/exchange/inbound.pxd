# Inbound: the interface between an exchange and the stream of its request.

cdef class Inbound(Session):
    cdef:
        Engine engine
        Peer peer
        bytes protocol          # as logs call it
        bint is_http2           # the request came in HTTP/2
        bint is_http10          # ... in HTTP/1.0
        bint write_paused       # the client takes no more for now: what comes from the backend has to wait
        bint handing            # bytes of the request are being handed over; more may follow before the call that does it returns
        bint defers             # ... and may take it back: no backend is asked before that

    # the request
    cdef int send_continue(self) except -1
    cdef int pause(self) except -1
    cdef int resume(self) except -1
    cdef bint paused(self) noexcept
    # its answer
    cdef int answer(self, int status, bytes lines, bytes body, bint is_head) except -1
    cdef int response_info(self, const uint8_t *base, ef_head *head) except -1
    cdef int response_head(self, const uint8_t *base, ef_head *head) except -1
    cdef int response_body(self, const uint8_t *data, size_t n) except -1
    cdef int response_flush(self) except -1
    cdef int response_trailers(self, const uint8_t *lines, size_t n) except -1
    cdef int response_end(self) except -1
    cdef bint takes_end(self, bint trailers) noexcept
    cdef bint has_room(self) noexcept
    cdef size_t untaken(self) noexcept
    # its end
    cdef int refuse_more(self) except -1
    cdef int abort(self, Cut why) except -1
    cdef int done(self, Exchange ex) except -1
    # what a log asks for
    cdef int learn_ends(self) except -1

cdef bytes first_lines(Engine engine, Exchange ex)

cdef bytes type_line(bytes lines)
