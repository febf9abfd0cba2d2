# Auth edits: the edits of a gRPC authorization service to an admitted request, and to its answer.

cdef class AuthEdits:
    cdef:
        list request            # (name, HeaderAction, line): lower case, b"name: value\r\n"
        HeaderNames removed     # of the request; None: none is
        list answer             # as `request`, for the client
        frozenset on            # statuses of responses that get `answer`; None: all
        size_t size             # bytes of all lines

    cdef int apply(self, RuleAuthFlow flow) except -1
    cdef size_t cost(self) noexcept


# All that services that have let a request pass said of it, as far as what comes after them needs it.
cdef class ServiceAuthResponse(AuthResponse):
    cdef:
        list answer             # (name, HeaderAction, line, statuses of responses that get it; None: all) for its client; None: nothing
        list names              # of HeaderNames: what is theirs of the request, behind its body, too

    cdef bytes lines(self, Exchange ex, const uint8_t *base, ef_head *head)
    cdef int drop_trailers(self, Out *lines) except -1
