# Error service: a service that writes error pages, and its calls.

cdef class HttpErrorService(ErrorService):
    cdef:
        Engine engine
        str cluster
        bytes path              # in place of the request's; b"": that one
        bytes host              # in place of the request's; b"": that one
        bytes lines             # fixed lines
        HeaderNames sends       # of the client's
        bint own_status         # the client gets the service's status
        int64_t timeout         # ms


# Holds a request for whose answer an error service was asked.
cdef class ErrorFlow(AuthFlow):
    cdef:
        Exchange ex             # None: it is over
        ErrorCall call
        int status              # of the answer that is replaced
        bytes lines             # its header lines
        bytes reason            # its body

    cdef int answer(self, int status, bytes lines, bytes body) except -1
    cdef int answer_plain(self) except -1


cdef class ErrorCall(UpstreamUser):
    cdef:
        HttpErrorService service
        ErrorFlow flow          # None: it is over
        Cluster cluster
        bytes source            # origin() of the request
        Out head
        Out trailers            # none, ever: connections ask for them
        Out answer              # the service's body
        uint32_t tries
        int status              # the service's
        bytes lines             # its header lines that go on

    cdef int open(self, Exchange ex) except -1
    cdef int write_head(self, Exchange ex) except -1
    cdef int fail(self, Cut why) except -1
    cdef ErrorFlow end(self, Cut why)
