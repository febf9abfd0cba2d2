# What one client has of a BodyShare.

cdef class BodyClient(HeapEntry):  # by places that it holds
    cdef:
        bytes address       # UpstreamUser.origin(); None: of all that have none
        EvictionHeap behind       # its users that hold them
