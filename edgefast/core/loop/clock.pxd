# Clock: the time as text.

cdef class Clock:
    cdef:
        int64_t second, log_second
        bytes date              # b"date: ...\r\n"
        bytes own               # b"server: ...\r\ndate: ...\r\n"
        bytes log_prefix

    cdef bytes date_line(self)
    cdef bytes server_and_date(self)
    cdef int log_time(self, Out *out) except -1


cdef inline int64_t now_us() noexcept:
    """Monotonic microseconds."""
    cdef timespec ts
    clock_gettime(CLOCK_MONOTONIC, &ts)
    return <int64_t>ts.tv_sec * 1000000 + ts.tv_nsec // 1000


cdef inline int64_t wall_ms() noexcept:
    """Milliseconds since 1970."""
    cdef timespec ts
    clock_gettime(CLOCK_REALTIME, &ts)
    return <int64_t>ts.tv_sec * 1000 + ts.tv_nsec // 1000000


cdef inline int64_t unix_us() noexcept:
    """Microseconds since 1970."""
    cdef timespec ts
    clock_gettime(CLOCK_REALTIME, &ts)
    return <int64_t>ts.tv_sec * 1000000 + ts.tv_nsec // 1000
