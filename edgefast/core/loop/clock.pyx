# Clock: the time as text: the Date header (RFC 9110 5.6.7) and the time of a log line (RFC 3339), rendered once a second.

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


cdef class Clock:
    def __cinit__(self):
        self.second = self.log_second = -1

    cdef bytes date_line(self):
        cdef timespec ts
        clock_gettime(CLOCK_REALTIME, &ts)
        if ts.tv_sec != self.second:
            self.second = ts.tv_sec
            moment = time.gmtime(ts.tv_sec)
            self.date = b"date: %b\r\n" % (
                f"{_DAYS[moment.tm_wday]}, {moment.tm_mday:02d} {_MONTHS[moment.tm_mon - 1]} {moment.tm_year:04d} "
                f"{moment.tm_hour:02d}:{moment.tm_min:02d}:{moment.tm_sec:02d} GMT"
            ).encode()
            self.own = b"server: edgefast\r\n" + self.date
        return self.date

    cdef bytes server_and_date(self):
        self.date_line()
        return self.own

    cdef int log_time(self, Out *out) except -1:
        """Append "2026-01-31T23:59:59.123Z"; the caller has reserved."""
        cdef timespec ts
        cdef int ms
        clock_gettime(CLOCK_REALTIME, &ts)
        if ts.tv_sec != self.log_second:
            self.log_second = ts.tv_sec
            self.log_prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(ts.tv_sec)).encode()
        out_bytes(out, self.log_prefix)
        ms = ts.tv_nsec // 1000000
        out.data[out.size] = <uint8_t>(48 + ms // 100)
        out.data[out.size + 1] = <uint8_t>(48 + ms // 10 % 10)
        out.data[out.size + 2] = <uint8_t>(48 + ms % 10)
        out.data[out.size + 3] = c"Z"
        out.size += 4
        return 0
