# Out: a growing buffer of bytes, and how text and numbers are written into it.
#
# In: pieces. Out: bytes in its own memory (or in the memory that the caller sets as `data` and `cap`). Writers do not check the free space:
# their caller has reserved it. First blocks of released buffers are kept for the next ones: a head needs one per request, and an allocation
# of 2 KiB is slow. They belong to the process; its engines run on one thread.

cdef enum:
    HEAD_BLOCK = 2048
    HEAD_SPARES = 256

cdef uint8_t *head_spares[HEAD_SPARES]
cdef int n_head_spares = 0


cdef int out_grow(Out *out, size_t more) except -1:
    """Make room for `more` bytes; the caller has found that there is none (out_reserve)."""
    global n_head_spares
    cdef size_t cap
    cdef void *grown
    if out.cap == 0 and more <= HEAD_BLOCK and n_head_spares:
        n_head_spares -= 1
        out.data = head_spares[n_head_spares]
        out.cap = HEAD_BLOCK
        return 0
    cap = out.cap * 2 if out.cap else HEAD_BLOCK
    while cap < out.size + more:
        cap *= 2
    grown = realloc(out.data, cap)
    if grown == NULL:
        raise MemoryError
    out.data = <uint8_t *>grown
    out.cap = cap
    return 0


cdef void out_free(Out *out) noexcept:
    """Empty again, and without memory."""
    global n_head_spares
    if out.cap == HEAD_BLOCK and n_head_spares < HEAD_SPARES:
        head_spares[n_head_spares] = out.data
        n_head_spares += 1
    else:
        free(out.data)
    out.data = NULL
    out.size = out.cap = 0
