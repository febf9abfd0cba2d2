# Requester: writes requests to a backend's connection: heads and framed bodies.
#
# In: the writes of a user, piece by piece. Out: HTTP/1.1, each piece in one write. It reads nothing; H1Client is its other half.

cdef class H1Requester(Outbound):
    cdef int end_head(self, Out *head) except -1:
        """The lines of framing and of the connection, and the end of the head."""
        out_reserve(head, 128 + (PyBytes_GET_SIZE(self.asked) if self.asked is not None else 0))
        if self.unsized:
            out_raw(head, <const char *>b"transfer-encoding: chunked\r\n", 28)
        if self.asked is not None:
            out_raw(head, <const char *>b"connection: upgrade\r\nupgrade: ", 30)
            out_bytes(head, self.asked)
            out_raw(head, <const char *>b"\r\n", 2)
        out_raw(head, <const char *>b"\r\n", 2)
        return 0

    cdef int write(self, Out *head, iovec *iov, int n, size_t total, bint end, Out *trailers) except -1:
        """A body without a length is framed here: one chunk for all pieces, and trailers have a place behind it."""
        cdef iovec all[MAX_IOV + 6]
        cdef uint8_t line[20]
        cdef Out size
        cdef int k = 0, i
        cdef size_t sum = total, whole = 0
        cdef bint chunked = self.unsized
        if not self.tunnel:
            if (self.request_done and total) or (not chunked and (total > self.owed or (end and total < self.owed))):
                # the backend would take what the next request begins with for a body, or the other way round
                _log.error("request body does not match the length in its head, or continues after its end; closing its connection")
                return self.connection.shut(True)
            if self.request_done:
                return 0
            if not chunked:
                self.owed -= total
        if head != NULL:
            whole = head.size
            self.end_head(head)
            all[0].iov_base = head.data
            all[0].iov_len = head.size
            sum += head.size
            k = 1
        if chunked and total:
            size.data = line
            size.size = 0
            size.cap = sizeof(line)
            out_hex(&size, total)
            out_raw(&size, <const char *>b"\r\n", 2)
            all[k].iov_base = line
            all[k].iov_len = size.size
            sum += size.size
            k += 1
        for i in range(n):
            all[k] = iov[i]
            k += 1
        if chunked and total:
            all[k].iov_base = <void *><const char *>b"\r\n0\r\n\r\n"
            all[k].iov_len = 2 if not end else 5 if trailers.size else 7
            sum += all[k].iov_len
            k += 1
        elif chunked and end:
            all[k].iov_base = <void *><const char *>b"0\r\n\r\n"
            all[k].iov_len = 3 if trailers.size else 5
            sum += all[k].iov_len
            k += 1
        if chunked and end and trailers.size:
            out_reserve(trailers, 2)
            memcpy(trailers.data + trailers.size, <const char *>b"\r\n", 2)  # behind its end: another try may go without it
            all[k].iov_base = trailers.data
            all[k].iov_len = trailers.size + 2
            sum += trailers.size + 2
            k += 1
        if end:
            self.request_done = True
        if k == 0:
            return 0
        self.engine.count_n(G_UPSTREAM_BYTES_SENT, sum)
        self.connection.sendv(all, k, sum)
        if head != NULL:
            head.size = whole  # as it was: another try may go over another kind of connection
            self.unprocessed = self.connection.broken and self.connection.wire is None  # at once: the kernel took nothing of it
        return 0
