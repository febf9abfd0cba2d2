/* fuzz_trailer.c - any bytes as trailer lines: spans stay inside, and whatever the chunked decoder lets pass is read to its end. */
#include "../chunk.h"
#include "../trailer.h"
#include "require.h"

#define ROOM (EF_MAX_TRAILER_BYTES + 1u)

/* How far the lines can be read. */
static size_t read_lines(const uint8_t *data, size_t len) {
    uint8_t *buf = exact_copy(data, len);
    size_t at = 0;
    while (at < len) {
        ef_span span;
        const size_t next = ef_trailer_next(buf, len, at, &span);
        if (next == 0) break;
        REQUIRE(next > at && next <= len && span.line_end == next);
        REQUIRE(span.name_off == at && span.name_len > 0 && buf[at + span.name_len] == ':');
        REQUIRE(span.val_off > at + span.name_len && span.val_off + span.val_len <= next - 2);
        REQUIRE(buf[next - 2] == '\r' && buf[next - 1] == '\n');
        REQUIRE(span.name_hash == ef_name_hash(buf + at, span.name_len));
        REQUIRE(((span.flags & EF_SPAN_UNDERSCORE) != 0) == (memchr(buf + at, '_', span.name_len) != NULL));
        at = next;
    }
    free(buf);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t lines[ROOM];
    size_t kept = 0;
    size_t at = 0;
    size_t used;
    size_t len;
    const uint8_t *span;
    int rc;
    ef_chunk chunk;
    (void)read_lines(data, size);
    ef_chunk_reset(&chunk);
    (void)ef_chunk_feed(&chunk, (const uint8_t *)"0\r\n", 3, &used, &span, &len);
    do {
        rc = ef_chunk_feed(&chunk, data + at, size - at, &used, &span, &len);
        at += used;
        if (rc != EF_CHUNK_TRAILER) break;
        REQUIRE(kept + len < ROOM);
        memcpy(lines + kept, span, len);
        kept += len;
    } while (at < size);
    if (ef_chunk_feed(&chunk, data, 0, &used, &span, &len) == EF_CHUNK_DONE) REQUIRE(read_lines(lines, kept) == kept);
    return 0;
}
