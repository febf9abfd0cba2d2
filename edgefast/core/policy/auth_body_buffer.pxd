# Auth body buffer: memory of a worker for bodies that authorization services receive.

cdef class AuthBodyBuffer:
    cdef:
        ClientShare clients     # RuleAuthFlows by Exchange.origin(); units of AUTH_BODY_PIECE bytes

    cdef bint reserve(self, RuleAuthFlow flow, size_t more) except -1
    cdef bint make_room(self, bytes client, uint32_t needed) except -1
    cdef int give_back(self, RuleAuthFlow flow) except -1
