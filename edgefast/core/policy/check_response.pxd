# CheckResponse: the answer of a gRPC authorization service (envoy.service.auth.v3.CheckResponse).

# HeaderValueOption.append_action, and what it is when nothing is said.
cdef enum HeaderAction:
    ACTION_APPEND = 0
    ACTION_ADD_IF_ABSENT = 1
    ACTION_OVERWRITE = 2
    ACTION_OVERWRITE_IF_THERE = 3
    ACTION_UNSAID = 4


cdef enum CheckSide:
    SIDE_NONE = 0
    SIDE_DENIED = 2         # the fields' numbers
    SIDE_OK = 3


cdef class CheckAnswer:
    cdef:
        bint said           # there is a status
        int code            # of google.rpc.Status; 0 is OK
        CheckSide side      # which of both is there; of both the last
        int status          # of HTTP, for a client that is denied; 0: it does not say
        bytes body          # for it
        list headers        # (name in lower case, value, HeaderAction): for the client, or for the backend
        list removed        # names of the request's
        list added          # as `headers`: of the answer to a request that passes
        bint asks_query     # the query is to be another one
        uint32_t lines      # of headers and names, so far

    cdef bint read(self, const uint8_t *data, size_t n, bint whole) except -1
    cdef bint read_side(self, const uint8_t *data, size_t n) except -1
    cdef bint read_header(self, const uint8_t *data, size_t n, list into) except -1
    cdef bint denies(self) noexcept
    cdef bint passes(self) noexcept
