# Token cache: verified tokens, so that each is verified once.
#
# In: tokens of requests, each under the cache id of its verifier; their outcomes.
# Out: the same, until they expire or their key is no longer trusted. It first evicts an entry without a use since the last eviction. It
# holds only tokens with a valid signature: other clients evict nothing.
# Must never hold a refusal for a missing or invalid signature, or show a token.

TOKENS = 4096                           # of a worker
TOKEN_BYTES = 8 * 1024 * 1024           # that they and their claims have
TOKEN_ENTRY = 512                       # bytes of an entry besides them: its place in a dict, its key, itself, its Outcome


cdef inline object place_of(uint64_t cache_id, const uint8_t *token, size_t n):
    """By its last 16 bytes, which are its signature's: as good as chance, and a fortieth of it to read. Two of one place displace each other."""
    cdef uint64_t words[2]
    cdef size_t tail = min(n, sizeof(words))
    memset(words, 0, sizeof(words))
    memcpy(words, token + n - tail, tail)
    return (words[0] ^ (words[1] * <uint64_t>0x9e3779b97f4a7c15ULL)) + (cache_id * <uint64_t>0xd6e8feb86659fd93ULL)


cdef class TokenCache:
    def __init__(self, size_t tokens=TOKENS, size_t size=TOKEN_BYTES):
        self.entries = {}
        self.most, self.room = tokens, size

    def __len__(self):
        return len(self.entries)

    cdef CachedToken look(self, uint64_t cache_id, const uint8_t *token, size_t n, double now):
        """None: it is not known, or is nothing any more; `now`: Unix seconds."""
        cdef object place = place_of(cache_id, token, n)
        cdef CachedToken found = self.entries.get(place)
        if found is None or found.cache_id != cache_id or <size_t>PyBytes_GET_SIZE(found.token) != n:
            return None
        if memcmp(PyBytes_AS_STRING(found.token), token, n) != 0:
            return None
        if found.until <= now or not found.key.trusted:
            self.drop(place)
            return None
        found.used = True
        return found

    def find(self, uint64_t cache_id, bytes token not None, double now):
        """Return what came of a token (an Outcome), if that is still so; `now`: Unix seconds."""
        cdef CachedToken found = self.look(cache_id, <const uint8_t *>PyBytes_AS_STRING(token), PyBytes_GET_SIZE(token), now)
        return found.outcome if found is not None else None

    def keep(self, uint64_t cache_id, bytes token not None, outcome, double now):
        """Take what came of a token, if it was verified and has time left."""
        cdef CachedToken entry
        if outcome.key is None or outcome.until <= now or not outcome.key.trusted:
            return
        place = place_of(cache_id, <const uint8_t *>PyBytes_AS_STRING(token), PyBytes_GET_SIZE(token))
        if place in self.entries:
            self.drop(place)
        entry = CachedToken.__new__(CachedToken)
        entry.admits, entry.lines = outcome.status == 0, outcome.lines
        entry.spans = spans_of(entry.lines) if entry.lines else b""
        entry.cost = cost_of_token(token, outcome) + PyBytes_GET_SIZE(entry.spans)
        if entry.cost > self.room:
            return
        entry.cache_id, entry.token, entry.outcome, entry.key, entry.until = cache_id, token, outcome, outcome.key, outcome.until
        self.entries[place] = entry
        self.size += entry.cost
        self.make_room()

    def clear(self):
        """Forget all."""
        self.entries.clear()
        self.size = 0

    cdef int make_room(self) except -1:
        """Who was of use is asked another time before it goes."""
        cdef CachedToken entry
        while self.size > self.room or <size_t>len(self.entries) > self.most:
            place = next(iter(self.entries))
            entry = self.entries[place]
            if not entry.used:
                self.drop(place)
                continue
            entry.used = False
            del self.entries[place]
            self.entries[place] = entry
        return 0

    cdef int drop(self, object place) except -1:
        cdef CachedToken entry = self.entries.pop(place)
        self.size -= entry.cost
        return 0


def cost_of_token(bytes token not None, outcome):
    """Return the bytes that an entry has."""
    cost = TOKEN_ENTRY + getsizeof(token) + getsizeof(outcome.lines)
    left = [outcome.claims]
    while left:
        one = left.pop()
        cost += getsizeof(one)
        if isinstance(one, dict):
            left += one  # its names
            left += one.values()
        elif isinstance(one, list):
            left += one
    return cost
