# Byte queue: bytes that are not sent or not consumed yet.

cdef struct ByteQueue:
    uint8_t *data
    size_t at           # of the first byte that waits
    size_t len
    size_t room

cdef int queue_append(ByteQueue *queue, const iovec *iov, int n, size_t skip, size_t bytes, size_t block) except -1

cdef void queue_free(ByteQueue *queue) noexcept

cdef void queue_take(ByteQueue *queue, size_t n) noexcept
