# Client share: a bounded resource of client addresses: the share of each client, and which member is closed first.
#
# In: members with their clients. Out: the member to close for a new one of another client. The client with most members loses its longest
# idle member. One client may hold everything while no other client needs a place. A subclass defines since when a member is idle, and how
# it is closed. Each call takes constant time: it looks at SHARE_CLIENTS clients with most, then at as many of the others, in turn. It looks
# at SHARE_LOOKS members of each. Busy clients with most members therefore protect others for some calls only.

cdef class ClientEntry(HeapEntry):
    def __cinit__(self):
        self.members = OrderedDict()


cdef class ClientShare:
    def __cinit__(self):
        self.parts = {}
        self.owners = {}
        self.ranks = Heap.__new__(Heap)

    cdef int64_t inactive_since(self, object member) except -2:
        """ms of the wheel since which it is idle; -1: it must not be closed."""
        raise NotImplementedError

    cdef int preempt(self, object member) except -1:
        """Close it, and remove it at once."""
        raise NotImplementedError

    cdef int enter(self, object client, object member) except -1:
        cdef ClientEntry part = self.parts.get(client)
        if part is None:
            part = ClientEntry.__new__(ClientEntry)
            part.client = client
            self.parts[client] = part
        part.members[member] = None
        self.owners[member] = part
        self.count += 1
        if client is not None:
            return self.ranks.up(part)
        part.count += 1
        return 0

    cdef bint leave(self, object member) except -1:
        """False: it was not here."""
        cdef ClientEntry part = self.owners.pop(member, None)
        if part is None:
            return False
        del part.members[member]
        self.count -= 1
        if part.client is not None:
            self.ranks.down(part)
        else:
            part.count -= 1
        if part.count == 0:
            del self.parts[part.client]
        return True

    cdef uint32_t held(self, object client) except? 0xFFFFFFFF:
        """Members of this client; 0 for None, which may stand for many."""
        cdef ClientEntry part = self.parts.get(client) if client is not None else None
        return part.count if part is not None else 0

    cdef object first(self, uint32_t least, int64_t by):
        """The member to close: idle at `by`, of clients that hold this many or more, those with most first. None: not found
        among the members looked at."""
        cdef list buckets = sorted([count for count in self.ranks.buckets if <uint32_t>count >= least], reverse=True)
        cdef size_t looks = SHARE_CLIENTS, n
        for count in buckets:
            n = len(self.ranks.buckets[count])
            found = self.search(count, looks, by)
            if found is not None:
                return found
            if n > looks:
                return self.first_of_others(buckets, count, n - looks, by)
            looks -= n
            if looks == 0:
                return self.first_of_others(buckets, <uint32_t>count - 1, 0, by)
        return None

    cdef object first_of_others(self, list buckets, uint32_t bucket, size_t left, int64_t by):
        """The clients with most have none: the same among SHARE_CLIENTS of those that follow, in turn. They begin with the last `left` that hold
        `bucket`, or all of these."""
        cdef size_t looks = SHARE_CLIENTS, n
        if <uint32_t>buckets[len(buckets) - 1] <= self.bucket <= bucket:
            bucket, left = self.bucket, self.left
        for count in buckets:
            if <uint32_t>count > bucket:
                continue
            n = len(self.ranks.buckets[count])
            if left and <uint32_t>count == bucket:
                n = min(n, left)
            found = self.search(count, min(n, looks), by)
            if found is not None:
                return found
            if n >= looks:
                self.left = n - looks
                self.bucket = <uint32_t>count if self.left else <uint32_t>count - 1
                return None
            looks -= n
        self.bucket = 0
        self.left = 0
        return None

    cdef object search(self, uint32_t count, size_t looks, int64_t by):
        """The same among so many clients that hold `count`. Those that have none come last the next time."""
        cdef object bucket = self.ranks.buckets[count]
        cdef ClientEntry part
        for part in list(islice(bucket, looks)):
            found = self.longest_idle(part, by)
            if found is not None:
                return found
            bucket.move_to_end(part)
        return None

    cdef object first_unknown(self, int64_t by):
        """The same among the members without a client."""
        cdef ClientEntry part = self.parts.get(None)
        return self.longest_idle(part, by) if part is not None else None

    cdef object longest_idle(self, ClientEntry part, int64_t by):
        """Of SHARE_LOOKS members, which come last the next time."""
        cdef object found = None
        cdef int64_t since, least = 0
        for member in list(islice(part.members, SHARE_LOOKS)):
            part.members.move_to_end(member)
            since = self.inactive_since(member)
            if 0 <= since <= by and (found is None or since < least):
                found, least = member, since
        return found

    cdef object room_for(self, object client, uint32_t most, int64_t now):
        """A place for one more member of this client. The share itself: a place is free. Else the member to close for it, or None."""
        return self if self.count < most else self.first(self.held(client) + 2, now)
