# A line of users that wait for the same thing, first come first served.
#
# In: users, each in one line at most. Out: whose turn it is. Who leaves, from wherever it stands, is out of it at once: whoever comes and
# goes, and however often, costs nobody a look at all the others.

cdef class Line:
    def __cinit__(self):
        self.users = OrderedDict()

    cdef uint32_t size(self) noexcept:
        return <uint32_t>len(self.users)

    cdef UpstreamUser first(self):
        """Whose turn it is; there is somebody."""
        return next(iter(self.users))

    cdef int join(self, UpstreamUser user) except -1:
        user.waiting = True
        user.line = self
        self.users[user] = None
        return 0

    cdef int leave(self, UpstreamUser user) except -1:
        """It has what it waited for, or waits no more."""
        user.line = None
        user.waiting = False
        del self.users[user]
        return 0
