# Memory of a worker that is lent to bodies which services are shown.

cdef class ShownOwner(Ranked):  # by pieces that are lent to it
    cdef:
        bytes address       # Exchange.origin(); None: of all that have none
        object bodies       # OrderedDict Admittance -> None, in the order in which they came


cdef class ShownBodies:
    cdef:
        dict owners         # address -> ShownOwner; none is without a body
        Ranks richest
        uint32_t pieces     # SHOWN_PIECE bytes each; all that are lent

    cdef bint lend(self, Admittance asker, size_t more) except -1
    cdef bint make_room(self, ShownOwner owner, uint32_t needed) except -1
    cdef int give_back(self, Admittance asker) except -1
