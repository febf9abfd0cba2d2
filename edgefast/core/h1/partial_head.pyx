# A head that comes in pieces: its scan goes on where it was, from memory of its own until it is complete.
#
# In: the engine's head, in which a whole one is scanned; the place where a connection keeps a begun one (NULL: none). Out: the same. A
# connection that waits for nothing keeps nothing. Must never be left behind: who keeps one lets go of it (piecemeal_free).

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
