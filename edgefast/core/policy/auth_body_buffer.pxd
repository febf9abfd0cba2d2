# Auth body buffer: memory of a worker for bodies that authorization services receive.

cdef class AuthBodyOwner(HeapEntry):  # by pieces that are lent to it
    cdef:
        bytes address       # Exchange.origin(); None: of all that have none
        object bodies       # OrderedDict RuleAuthFlow -> None, in the order in which they came


cdef class AuthBodyBuffer:
    cdef:
        dict owners         # address -> AuthBodyOwner; none is without a body
        Heap richest
        uint32_t pieces     # AUTH_BODY_PIECE bytes each; all that are lent

    cdef bint reserve(self, RuleAuthFlow flow, size_t more) except -1
    cdef bint make_room(self, AuthBodyOwner owner, uint32_t needed) except -1
    cdef int give_back(self, RuleAuthFlow flow) except -1
