# Partial head: a head that arrives in pieces; its scan resumes where it stopped, from its own memory until it is complete.
#
# In: the engine's head, for the scan of complete ones; the slot where a connection keeps a partial one (NULL: none). Out: the same. A
# connection without a partial head keeps no memory. Must never leak: the owner of a partial head frees it.

cdef inline int partial_head_keep(ef_head **kept, const ef_head *head) except -1:
    """More bytes are needed: keep the scan, if it is not the kept one that went on."""
    if kept[0] == NULL:
        kept[0] = <ef_head *>malloc(sizeof(ef_head))
        if kept[0] == NULL:
            raise MemoryError
        memcpy(kept[0], head, sizeof(ef_head))
        return 1
    return 0


cdef inline void partial_head_done(ef_head **kept, ef_head *head) noexcept:
    """The scan is over: its state may go, its result is used from the engine's copy."""
    if kept[0] != NULL:
        memcpy(head, kept[0], sizeof(ef_head))
        partial_head_free(kept)


cdef inline void partial_head_free(ef_head **kept) noexcept:
    free(kept[0])
    kept[0] = NULL
