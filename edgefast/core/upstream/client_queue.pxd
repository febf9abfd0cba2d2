# Client queue: users of one client that wait for the same resource.

cdef class ClientQueue(HeapEntry):    # by how many stand in it
    cdef:
        bytes address       # UpstreamUser.origin(); None: of all that have none
        FairQueue queue
        object users        # OrderedDict UpstreamUser -> None

    cdef UpstreamUser first(self)
    cdef UpstreamUser last(self)
