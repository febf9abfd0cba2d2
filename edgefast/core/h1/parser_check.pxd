# Parser check: httptools as a second parser of framing: one message at a time, no header callbacks.

cdef class ParserCheck:
    cdef:
        object parser
        object feed                 # its methods, bound once
        object should_keep_alive
        object get_word             # of a request's head its method, of an answer's its status
        object get_version
        bint complete       # the parser saw the end of the message
        bint keep_alive     # what the parser made of version and Connection
        bint in_head        # what is being read
        bint request
        object window       # what it is shown: a memoryview that is nowhere else

    cdef int show(self, const uint8_t *data, size_t n) except -1
    cdef void detach(self) noexcept
    cdef int head(self, const uint8_t *data, size_t n, const ef_head *head, bint no_body) except -1
    cdef int chunks(self, const uint8_t *data, size_t n, const ef_chunk *chunk) except -1
    cdef int body(self, const uint8_t *data, size_t n) except -1

cdef object new_window()
cdef uint64_t hash_request(const uint8_t *data, size_t n, const ef_head *head) noexcept
cdef uint64_t hash_response(const uint8_t *data, size_t n, const ef_head *head, bint no_body) noexcept
