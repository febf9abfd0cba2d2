# Token cache: verified tokens.

cdef class CachedToken:
    cdef:
        uint64_t cache_id
        bytes token
        object outcome          # tokens.outcome.Outcome
        object key              # tokens.trust.TrustedKey that verified it
        double until            # Unix seconds
        size_t cost             # bytes
        bint used               # since a place was looked for last
        bint admits             # it lets in
        bytes lines             # for backends
        bytes spans             # of `lines`


cdef class TokenCache:
    cdef:
        dict entries            # place_of a token -> CachedToken; the oldest in front; whoever was of use is put behind when a place is looked for
        size_t most             # tokens
        size_t room             # bytes
        readonly size_t size    # bytes

    cdef CachedToken look(self, uint64_t cache_id, const uint8_t *token, size_t n, double now)
    cdef int drop(self, object place) except -1
    cdef int make_room(self) except -1
