# Response rewrite: changes of Location, Refresh and Set-Cookie in a backend's response.

cdef class TextRewrite:
    cdef:
        bint exact              # the whole value, in any case, without its first dot; else its beginning
        bytes text              # None: `substitution`
        list pieces             # of the replacement of a text; None: it cannot be used
        Substitution substitution

    cdef bytes apply(self, bytes value, dict variables)


cdef class ResponseRewrite:
    cdef:
        list locations, domains, paths  # of TextRewrite
        bint wants_host                 # {host} is in a replacement

    cdef bytes location(self, bytes value, dict variables)
    cdef bytes refresh(self, bytes value, dict variables)
    cdef bytes cookie(self, bytes value)
    cdef bytes lines(self, Exchange ex, const uint8_t *base, ef_head *head)


cdef bint rewrite_response(Exchange ex, const uint8_t *base, ef_head *head) except -1
