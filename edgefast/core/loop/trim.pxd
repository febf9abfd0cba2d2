# Trim: memory that the C library keeps after a peak.

cdef class Trim(Timer):
    cdef:
        Engine engine
        # the most at once since memory was given back
        size_t connections      # of clients
        size_t handshakes
        size_t tcp_proxies         # connections that are passed on (layer 4)
        size_t streams          # HTTP/2 requests
        int64_t not_before      # ms

    cdef int fell(self, size_t *peak, size_t n) except -1


cdef inline void trim_rose(size_t *peak, size_t n) noexcept:
    if n > peak[0]:
        peak[0] = n
