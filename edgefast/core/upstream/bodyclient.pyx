# One client address among those whose bodies hold places of a cluster's share: how much it has, and which of its bodies brought least.
#
# In: users of that address. Out: what BodyShare decides by. There is one while it holds places, so there are never more than those.

cdef class BodyClient(HeapEntry):
    def __cinit__(self):
        self.behind = EvictionHeap(True)
