# One client address among those whose bodies hold places of a cluster's share, or wait for one: its own line, and how much it has.
#
# In: users of that address. Out: what BodyShare decides by. There is one while it holds or waits, so there are never more than places
# and waiting users together.

cdef class BodyClient(Line):
    cdef int join(self, UpstreamUser user) except -1:
        Line.join(self, user)
        self.share.waiting += 1
        self.share.turns[self] = None  # behind the others, unless it stands there already
        return 0

    cdef int leave(self, UpstreamUser user) except -1:
        Line.leave(self, user)
        self.share.waiting -= 1
        if self.size() == 0:
            del self.share.turns[self]
            self.share.let_go(self)
        return self.share.end_unused()

    cdef UpstreamUser first_that_stopped(self, int *looks):
        """The one who waits longest of those that do not come; None: there is none among as many as may be looked at."""
        cdef UpstreamUser user
        for user in self.users:
            if not user.comes():
                return user
            looks[0] -= 1
            if looks[0] == 0:
                break
        return None
