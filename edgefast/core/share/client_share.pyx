# Client share: a bounded resource that clients share: what each client holds, whose turn is next, and which client loses some of it first.
#
# In: members with their clients, each with one unit or more of the resource. Out: the client with most, and the next one in turn. The rule
# of all shares: one client may hold everything while no other needs any; a newcomer takes from the client with most, if that one still
# holds more than the newcomer then does. One unit therefore moves only from a client with at least two more.
# A member comes, and `held`, `most` and `pass_turn` take, in constant time. A member goes in as many steps as it has units. `first` searches
# for a member that may be closed: it looks at SHARE_CLIENTS clients with most, then at as many of all others in turn, and at SHARE_LOOKS
# members of each. Busy clients with most members therefore protect others for some calls only. A subclass defines since when a member is
# idle, and how it is closed.

cdef class ClientEntry:
    def __cinit__(self):
        self.members = OrderedDict()

    cdef object first(self):
        """The member that came first, or was looked at longest ago; one exists."""
        return next(iter(self.members))

    cdef object last(self):
        """The member that came last; one exists."""
        return next(reversed(self.members))


def _members_in_turn(ClientShare share, int most):
    cdef ClientEntry entry
    for entry in share.entries.values():
        for member in entry.members:
            if most == 0:
                return
            most -= 1
            yield member


cdef class ClientShare:
    def __cinit__(self):
        self.entries = OrderedDict()
        self.owners = {}
        self.ranks = {}

    def __len__(self):
        """Members."""
        return len(self.owners)

    # --- members -------------------------------------------------------------------------------------------------------------

    cdef ClientEntry make_entry(self):
        """An entry without members, of a subclass if need be."""
        return ClientEntry.__new__(ClientEntry)

    cdef int enter(self, object client, object member) except -1:
        """A new member, with one unit."""
        return self.grow(client, member, 1)

    cdef int grow(self, object client, object member, uint32_t units) except -1:
        """The member, which may be new, holds so many units more. Its client never changes."""
        cdef ClientEntry entry = self.entries.get(client)
        if entry is None:
            entry = self.make_entry()
            entry.client = client
            self.entries[client] = entry
        entry.members[member] = entry.members.get(member, 0) + units
        self.owners[member] = entry
        self.count += units
        return self.rank(entry, entry.count + units)

    cdef uint32_t leave(self, object member) except? 0xFFFFFFFF:
        """Returns the units that it held; 0: it was not here."""
        cdef ClientEntry entry = self.owners.pop(member, None)
        cdef uint32_t units
        if entry is None:
            return 0
        units = entry.members.pop(member)
        self.count -= units
        self.rank(entry, entry.count - units)
        if not entry.members:
            del self.entries[entry.client]
        return units

    cdef int rank(self, ClientEntry entry, uint32_t count) except -1:
        """The client holds so many units from now on."""
        cdef object bucket
        if entry.client is None and not self.ranks_unknown:
            entry.count = count
            return 0
        if entry.count:
            bucket = self.ranks[entry.count]
            del bucket[entry]
            if not bucket:
                del self.ranks[entry.count]
        entry.count = count
        if count:
            bucket = self.ranks.get(count)
            if bucket is None:
                bucket = self.ranks[count] = OrderedDict()
            bucket[entry] = None
        if count > self.top:
            self.top = count
        while self.top and self.top not in self.ranks:  # at most as many steps as this client lost units
            self.top -= 1
        return 0

    cdef int pass_turn(self, ClientEntry entry) except -1:
        """One of its members was served: the turns of other clients come before its next."""
        if entry.members:
            self.entries.move_to_end(entry.client)
        return 0

    cdef object members_in_turn(self, int most):
        """An iterator of at most so many members in the order of turns: all of a client before those of the next one."""
        return _members_in_turn(self, most)

    def add(self, client, member, uint32_t units=1):
        """A new member, with its units."""
        self.grow(client, member, units)

    def remove(self, member):
        """Returns the units that it held; 0: it was not here."""
        return self.leave(member)

    def take(self):
        """Remove and return the first member of the client whose turn it is; one exists."""
        cdef ClientEntry entry = next(iter(self.entries.values()))
        member = entry.first()
        self.leave(member)
        self.pass_turn(entry)
        return member

    def take_last(self, client):
        """Remove and return the last member of a client; None: it has none."""
        cdef ClientEntry entry = self.entries.get(client)
        if entry is None:
            return None
        member = entry.last()
        self.leave(member)
        return member

    # --- the client with most ------------------------------------------------------------------------------------------------

    cdef uint32_t held(self, object client) except? 0xFFFFFFFF:
        """Units of this client; 0 for None, unless unidentified clients count as one."""
        cdef ClientEntry entry
        if client is None and not self.ranks_unknown:
            return 0
        entry = self.entries.get(client)
        return entry.count if entry is not None else 0

    cdef ClientEntry most(self):
        """The client with most; of equals the one that holds so many for longest. None: no identified client holds any."""
        return next(iter(self.ranks[self.top])) if self.top else None

    cdef ClientEntry client_to_evict(self, object client, uint32_t units):
        """The client that loses units for one that needs so many more: the one with most, if it holds more than that one then would.
        None: no client does."""
        cdef ClientEntry most = self.most()
        return most if most is not None and most.count > self.held(client) + units else None

    def evict(self, client, uint32_t units=1):
        """Remove and return the last member of the client that loses units for this one; None: no client does."""
        cdef ClientEntry entry = self.client_to_evict(client, units)
        return self.take_last(entry.client) if entry is not None else None

    # --- members that may be closed ------------------------------------------------------------------------------------------

    cdef int64_t inactive_since(self, object member) except -2:
        """ms of the wheel since which it is idle; -1: it must not be closed."""
        raise NotImplementedError

    cdef int preempt(self, object member) except -1:
        """Close it, and remove it at once."""
        raise NotImplementedError

    cdef object first(self, uint32_t least, int64_t by):
        """The member to close: idle at `by`, of clients that hold this many or more, those with most first. None: not found
        among the members looked at."""
        cdef list counts = sorted([count for count in self.ranks if <uint32_t>count >= least], reverse=True)
        found = self.search(counts, by)
        if found is None and counts and len(self.entries) > SHARE_CLIENTS:
            self.turn = (self.turn + 1) % <uint32_t>len(counts)
            found = self.search(counts[self.turn:] + counts[:self.turn], by)
        return found

    cdef object search(self, list counts, int64_t by):
        """The same among the first SHARE_CLIENTS clients that hold so many. Those without one come last the next time."""
        cdef ClientEntry entry
        cdef int looks = SHARE_CLIENTS
        for count in counts:
            bucket = self.ranks[count]
            for entry in list(islice(bucket, looks)):
                found = self.longest_idle(entry, by)
                if found is not None:
                    return found
                bucket.move_to_end(entry)
                looks -= 1
            if looks == 0:
                break
        return None

    cdef object first_unknown(self, int64_t by):
        """The same among the members without a client."""
        cdef ClientEntry entry = self.entries.get(None)
        return self.longest_idle(entry, by) if entry is not None else None

    cdef object longest_idle(self, ClientEntry entry, int64_t by):
        """Of SHARE_LOOKS members, which come last the next time."""
        cdef object found = None
        cdef int64_t since, least = 0
        for member in list(islice(entry.members, SHARE_LOOKS)):
            entry.members.move_to_end(member)
            since = self.inactive_since(member)
            if 0 <= since <= by and (found is None or since < least):
                found, least = member, since
        return found

    cdef object room_for(self, object client, uint32_t most, int64_t now):
        """A place for one more member of this client. The share itself: a place is free. Else the member to close for it, or None."""
        return self if self.count < most else self.first(self.held(client) + 2, now)
