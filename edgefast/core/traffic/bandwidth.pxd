# Bandwidth: limits the bytes of a response body per time (ir.Bandwidth).

cdef class Bandwidth:
    cdef:
        int64_t amount          # bytes in `period`
        int64_t period          # ms
        int64_t burst           # bytes of one second, at least 1: most tokens of a response that has used its first bytes
        int64_t unlimited       # first bytes of a response without a limit


cdef class LimitedResponse(Timer):
    cdef:
        Exchange ex             # None: it has ended
        Bandwidth bandwidth
        int64_t tokens          # bytes that may go on now
        int64_t filled_at       # ms; tokens are those of that time
        Out kept                # bytes of the body that have to wait
        size_t sent             # of these, bytes that have gone on
        Out trailers            # lines behind the body; they wait for it
        bint ended              # all of the response is here

    cdef void fill(self, int64_t now) noexcept
    cdef size_t take(self, size_t wanted) noexcept
    cdef int put(self, const uint8_t *data, size_t n) except -1
    cdef bint waits(self) noexcept
    cdef int wait(self) except -1
    cdef int put_trailers(self, const uint8_t *lines, size_t n) except -1
    cdef int end(self) except -1
    cdef int release(self) except -1
    cdef int stop(self) except -1
