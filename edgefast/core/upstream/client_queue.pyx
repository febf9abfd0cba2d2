# A line of users of one client address that wait for the same thing, first come first served.
#
# In: users, each in one line at most. Out: who stands where. Who leaves, from wherever it stands, is out of it at once: whoever comes and
# goes, and however often, costs nobody a look at all the others. There is one while somebody stands in it, so there are never more than
# users that wait.

cdef class ClientQueue(HeapEntry):
    def __cinit__(self):
        self.users = OrderedDict()

    cdef UpstreamUser first(self):
        """Who came first; there is somebody."""
        return next(iter(self.users))

    cdef UpstreamUser last(self):
        """Who came last; there is somebody."""
        return next(reversed(self.users))
