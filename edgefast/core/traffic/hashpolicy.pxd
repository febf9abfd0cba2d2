# Hash policy: which part of a request decides its endpoint.

cdef class HashPolicy:
    cdef:
        bint source             # its client's address
        list headers            # of HeaderNames, one name each
        list params             # names of the query's parameters
        list parts              # of (kind, HeaderNames or name); all of them together
        bytes cookie            # name; None: none
        bytes new_cookies            # what a new cookie has after its value; None: clients without one are given none

    cdef int read(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len) except -1
    cdef bytes in_parts(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len)
    cdef list in_headers(self, list headers, const uint8_t *base, const ef_head *head, uint8_t drop_flags)
    cdef list in_params(self, list params, const uint8_t *query, size_t query_len)
    cdef bytes in_cookies(self, bytes name, const uint8_t *base, const ef_head *head)
    cdef bytes make_cookie(self, Exchange ex)
