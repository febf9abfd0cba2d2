/* chunk.h - decoder of a chunked body (RFC 9112 7.1), resumable at every byte, no copy.
 *
 * Feed bytes; each call consumes some and yields at most one span of body data or of trailer lines:
 *   EF_CHUNK_DATA     *data,*data_len is body content inside the input; *used bytes were consumed (call again with the rest)
 *   EF_CHUNK_TRAILER  the same of the trailer lines with their CRLF, but for the empty one that ends them; all spans together
 *                     are `trailers` lines of `trailer_bytes` bytes (trailer.h reads them)
 *   EF_CHUNK_DONE     the message ended; *used is exact, what follows belongs to the next message
 *   EF_NEED_MORE      all input consumed, no fault (*used == len)
 *   EF_BAD            chunk->error: enum ef_chunk_error; *used counts the bytes before the one that proves the fault
 * After DONE and BAD the same answer comes again, with *used 0, until ef_chunk_reset().
 * Extensions are parsed and dropped, trailers are checked (token name, no control bytes); limits in limits.h.
 * Strict like llhttp: CRLF only, no white space around the size nor in extensions (outside of quoted strings), sizes of 1 to
 * EF_MAX_CHUNK_DIGITS hex digits (leading zeros are legal) up to EF_MAX_CONTENT_LENGTH.
 */
#ifndef EF_CHUNK_H
#define EF_CHUNK_H
#include <stddef.h>
#include <stdint.h>

#define EF_CHUNK_DATA    1
#define EF_CHUNK_DONE    2
#define EF_CHUNK_TRAILER 3

enum ef_chunk_error {
    EF_CE_NONE = 0,
    EF_CE_SIZE,
    EF_CE_EXTENSION,
    EF_CE_CRLF,
    EF_CE_TRAILER,
    EF_CE_LIMIT,
    EF_CE_COUNT
};

typedef struct ef_chunk {
    uint64_t left;          /* bytes left of the chunk in progress */
    uint32_t ext_bytes;     /* extension bytes of the whole body so far */
    uint16_t trailer_bytes; /* of all trailer lines so far, with their CRLF */
    uint8_t trailers;       /* trailer lines so far */
    uint8_t digits;         /* of the size in progress */
    uint8_t state;          /* internal */
    uint8_t error;          /* enum ef_chunk_error */
    uint8_t reserved_[6];
} ef_chunk;
_Static_assert(sizeof(ef_chunk) == 24, "ef_chunk layout");

void ef_chunk_reset(ef_chunk *chunk);
int ef_chunk_feed(ef_chunk *chunk, const uint8_t *buf, size_t len, size_t *used, const uint8_t **data,
                  size_t *data_len);
/* 1 once a trailer line has begun: llhttp takes those for headers. */
int ef_chunk_in_trailers(const ef_chunk *chunk);
const char *ef_chunk_error_text(int error); /* "malformed chunk size" ... never NULL */
#endif
