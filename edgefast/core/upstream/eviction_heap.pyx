# Eviction heap: finds the user of a BodyShare that is furthest behind, without a scan of all of them.
#
# In: users with a new place. Out: one that may be evicted. The position of an entry is corrected when it comes to the top. Received bytes
# move a user back, so a read has paid for each such correction. A user that has left is dropped there, or when there are too many.

cdef class EvictionHeap:
    def __cinit__(self, bint trusted):
        self.heap = []
        self.trusted = trusted

    cdef int64_t until(self, UpstreamUser user) noexcept:
        return user.trusted_until if self.trusted else user.progress_until

    cdef int add(self, UpstreamUser user, size_t holders) except -1:
        """One more, of so many that hold places now."""
        self.number += 1
        heappush(self.heap, (self.until(user), self.number, user))
        if <size_t>len(self.heap) > 2 * holders + SHARE_TURNS:
            self.heap = [entry for entry in self.heap if (<UpstreamUser>entry[2]).place is not None]
            heapify(self.heap)
        return 0

    cdef UpstreamUser first(self, int64_t by, int64_t now):
        """Who is furthest behind, and was at `by`; None: nobody. Whoever is not waited for is asked about again after some time: at most
        SHARE_TURNS are looked at."""
        cdef UpstreamUser user
        cdef int64_t until
        cdef int looks = SHARE_TURNS
        while self.heap and looks:
            until, number, user = self.heap[0]
            if user.place is None:
                heappop(self.heap)
            elif self.until(user) > until:
                heapreplace(self.heap, (self.until(user), number, user))
            elif until > by:
                return None
            elif user.keeps_waiting():
                return user
            else:
                heapreplace(self.heap, (now + BODY_GRACE_MS, number, user))
                looks -= 1
        return None
