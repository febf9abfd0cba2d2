# Byte queue: a queue in one piece of memory, which is released as soon as the queue is empty.
#
# In: pieces, appended; a number of bytes to remove at the start. Out: (data + at, len), in one piece. The caller sets the bound. All zero
# is an empty queue.

cdef int queue_append(ByteQueue *queue, const iovec *iov, int n, size_t skip, size_t bytes, size_t block) except -1:
    """Copy the pieces' bytes behind the first `skip` of them, `bytes` in all. block: of memory, the least."""
    cdef size_t need = queue.len + bytes, room = queue.room, length
    cdef uint8_t *to
    cdef int i
    if queue.at + need > room:
        if queue.at:
            memmove(queue.data, queue.data + queue.at, queue.len)
            queue.at = 0
        if need > room:
            room = room if room else block
            while room < need:
                room *= 2
            to = <uint8_t *>realloc(queue.data, room)
            if to == NULL:
                raise MemoryError
            queue.data = to
            queue.room = room
    to = queue.data + queue.at + queue.len
    for i in range(n):
        length = iov[i].iov_len
        if skip >= length:
            skip -= length
            continue
        memcpy(to, <uint8_t *>iov[i].iov_base + skip, length - skip)
        to += length - skip
        skip = 0
    queue.len = need
    return 0


cdef void queue_take(ByteQueue *queue, size_t n) noexcept:
    """Let the first n bytes go."""
    queue.at += n
    queue.len -= n
    if queue.len == 0:
        queue_free(queue)


cdef void queue_free(ByteQueue *queue) noexcept:
    free(queue.data)
    memset(queue, 0, sizeof(ByteQueue))
