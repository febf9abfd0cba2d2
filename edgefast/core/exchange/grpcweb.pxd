# gRPC-Web: the state of a gRPC-Web call for its request and its answer.

cdef class GrpcWeb:
    cdef:
        bytes request_line      # content-type, as the backend gets it
        bytes answer_line       # ... and its client
        bint text               # Base64, both ways
        bint translates         # the backend's answer is gRPC
        bint trailers_sent               # the frame that ends a body has been made of its head
        ef_base64 group         # of the request's text
        Out out                 # what is ready for its client and not handed over: of one read

    cdef int learn(self, const uint8_t *base, ef_head *head) except -1
    cdef int begin_request(self, const uint8_t *base, ef_head *head) except -1
    cdef int request_body(self, Exchange ex, iovec *iov, int n, int64_t left) except -1
    cdef bint whole(self) noexcept
    cdef int begin_answer(self, const uint8_t *base, ef_head *head) except -1
    cdef int answer_body(self, Inbound down, const uint8_t *data, size_t n) except -1
    cdef int answer_trailers(self, const uint8_t *lines, size_t n) except -1
    cdef int put(self, const uint8_t *data, size_t n) except -1
    cdef int hand_over(self, Inbound down) except -1
    cdef void flushed(self) noexcept
    cdef tuple own_answer(self, bytes own, bytes lines)
