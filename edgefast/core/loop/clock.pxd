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
