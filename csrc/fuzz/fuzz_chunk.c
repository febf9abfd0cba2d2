/* fuzz_chunk.c - any bytes as a chunked body: the same data and the same end however it arrives. */
#include "../chunk.h"
#include "../head.h"
#include "require.h"

typedef struct outcome {
    int rc;
    int error;
    size_t used;
    size_t data_len;
    uint64_t data_hash;
    size_t lines_len;
    uint64_t lines_hash;
} outcome;

static int feed(ef_chunk *chunk, outcome *out, const uint8_t *data, size_t len) {
    uint8_t *buf = exact_copy(data, len);
    size_t at = 0;
    do {
        size_t used;
        const uint8_t *body;
        size_t body_len;
        out->rc = ef_chunk_feed(chunk, buf + at, len - at, &used, &body, &body_len);
        REQUIRE(used <= len - at);
        const int spans = out->rc == EF_CHUNK_DATA || out->rc == EF_CHUNK_TRAILER;
        REQUIRE(spans ? body_len > 0 && body + body_len == buf + at + used : body_len == 0);
        REQUIRE((out->rc == EF_BAD) == (chunk->error != EF_CE_NONE));
        uint64_t *hash = out->rc == EF_CHUNK_DATA ? &out->data_hash : &out->lines_hash;
        for (size_t i = 0; i < body_len; i++)
            *hash = (*hash ^ body[i]) * 1099511628211u;
        *(out->rc == EF_CHUNK_DATA ? &out->data_len : &out->lines_len) += body_len;
        at += used;
    } while (out->rc == EF_CHUNK_DATA || out->rc == EF_CHUNK_TRAILER);
    if (out->rc == EF_BAD) out->lines_len = out->lines_hash = 0; /* nobody reads them any more */
    REQUIRE(out->rc != EF_NEED_MORE || at == len);
    free(buf);
    out->used += at;
    out->error = chunk->error;
    return out->rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ef_chunk chunk;
    outcome whole;
    outcome parts;
    memset(&whole, 0, sizeof(whole));
    ef_chunk_reset(&chunk);
    (void)feed(&chunk, &whole, data, size);
    REQUIRE(whole.data_len <= size);

    const size_t split = fuzz_number(data, size) % (size + 1);
    memset(&parts, 0, sizeof(parts));
    ef_chunk_reset(&chunk);
    if (feed(&chunk, &parts, data, split) == EF_NEED_MORE) (void)feed(&chunk, &parts, data + split, size - split);
    REQUIRE(memcmp(&whole, &parts, sizeof(whole)) == 0);

    memset(&parts, 0, sizeof(parts));
    ef_chunk_reset(&chunk);
    parts.rc = EF_NEED_MORE;
    for (size_t i = 0; i < size && parts.rc == EF_NEED_MORE; i++)
        (void)feed(&chunk, &parts, data + i, 1);
    REQUIRE(memcmp(&whole, &parts, sizeof(whole)) == 0);
    return 0;
}
