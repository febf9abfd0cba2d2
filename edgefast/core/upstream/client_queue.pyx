# Client queue: users of one client address that wait for the same resource, first come first served.
#
# In: users, each in one queue at most. Out: their order. A user leaves from any position at once, without a scan of the others. An empty
# queue does not exist, so the number of queues never exceeds the number of waiting users.

cdef class ClientQueue(HeapEntry):
    def __cinit__(self):
        self.users = OrderedDict()

    cdef UpstreamUser first(self):
        """Who came first; there is somebody."""
        return next(iter(self.users))

    cdef UpstreamUser last(self):
        """Who came last; there is somebody."""
        return next(reversed(self.users))
