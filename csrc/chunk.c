/* chunk.c - decoder of a chunked body as a state machine over single bytes; chunk data and trailer lines are taken in spans.
 *
 * In: any piece of the body. Out: spans of data and of trailer lines, the exact end of the message. Must never let through what another parser could
 * frame differently: sizes that wrap, bare LF, white space, junk after the data, extensions and trailers without end.
 */
#include "chunk.h"

#include <string.h>

#include "head.h"
#include "internal/charset.h"
#include "internal/control.h"

enum state {
    SIZE = 0,
    EXT_NAME_START, /* behind ';' */
    EXT_NAME,
    EXT_VALUE_START, /* behind '=' */
    EXT_TOKEN,
    EXT_QUOTED,
    EXT_QUOTED_PAIR, /* behind a backslash */
    EXT_QUOTED_END,  /* behind the closing quote */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_START, /* first byte of a trailer line, or the CR of the last empty one */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    DONE,
};

void ef_chunk_reset(ef_chunk *chunk) { memset(chunk, 0, sizeof(*chunk)); }

/* Extensions are counted from their ';' on, over the whole body: 16 KiB of them in one-byte chunks are as useless as in one. */
static int count_extension(ef_chunk *chunk) { return ++chunk->ext_bytes > EF_MAX_CHUNK_EXT ? EF_CE_LIMIT : EF_CE_NONE; }

static int begin_extension(ef_chunk *chunk) {
    chunk->state = EXT_NAME_START;
    return count_extension(chunk);
}

static int step_size(ef_chunk *chunk, uint8_t byte) {
    if (ef_is(byte, EF_CLASS_HEX)) {
        if (chunk->digits == EF_MAX_CHUNK_DIGITS) return EF_CE_SIZE;
        chunk->digits++;
        chunk->left = chunk->left << 4 | ef_hex_value(byte);
        return chunk->left > EF_MAX_CONTENT_LENGTH ? EF_CE_SIZE : EF_CE_NONE;
    }
    if (chunk->digits == 0) return EF_CE_SIZE;
    if (byte == '\r')
        chunk->state = SIZE_LF;
    else if (byte == ';')
        return begin_extension(chunk);
    else
        return byte == '\n' ? EF_CE_CRLF : EF_CE_SIZE;
    return EF_CE_NONE;
}

/* What may follow a complete extension. */
static int end_extension(ef_chunk *chunk, uint8_t byte) {
    if (byte == ';')
        chunk->state = EXT_NAME_START;
    else if (byte == '\r')
        chunk->state = SIZE_LF;
    else
        return EF_CE_EXTENSION;
    return EF_CE_NONE;
}

/* Behind the first ';': *( ";" token [ "=" ( token / quoted-string ) ] ), RFC 9112 7.1.1. */
static int step_extension(ef_chunk *chunk, uint8_t byte) {
    const int is_token = ef_token_lower[byte] != 0;
    if (byte != '\r' && count_extension(chunk) != EF_CE_NONE) return EF_CE_LIMIT;
    switch (chunk->state) {
    case EXT_NAME_START:
        chunk->state = EXT_NAME;
        return is_token ? EF_CE_NONE : EF_CE_EXTENSION;
    case EXT_NAME:
        if (is_token) return EF_CE_NONE;
        if (byte != '=') return end_extension(chunk, byte);
        chunk->state = EXT_VALUE_START;
        return EF_CE_NONE;
    case EXT_VALUE_START:
        chunk->state = byte == '"' ? EXT_QUOTED : EXT_TOKEN;
        return is_token || byte == '"' ? EF_CE_NONE : EF_CE_EXTENSION;
    case EXT_TOKEN:
        return is_token ? EF_CE_NONE : end_extension(chunk, byte);
    case EXT_QUOTED:
        if (byte == '"') chunk->state = EXT_QUOTED_END;
        if (byte == '\\') chunk->state = EXT_QUOTED_PAIR;
        return ef_is_control(byte) ? EF_CE_EXTENSION : EF_CE_NONE;
    case EXT_QUOTED_PAIR:
        chunk->state = EXT_QUOTED;
        return ef_is_control(byte) ? EF_CE_EXTENSION : EF_CE_NONE;
    default: /* EXT_QUOTED_END */
        return end_extension(chunk, byte);
    }
}

static int step_trailer(ef_chunk *chunk, uint8_t byte) {
    if (chunk->state == TRAILER_START && byte == '\r') {
        chunk->state = END_LF;
        return EF_CE_NONE;
    }
    if (chunk->trailer_bytes >= EF_MAX_TRAILER_BYTES) return EF_CE_LIMIT;
    chunk->trailer_bytes++;
    switch (chunk->state) {
    case TRAILER_START:
        if (ef_token_lower[byte] == 0) return EF_CE_TRAILER;
        if (chunk->trailers == EF_MAX_TRAILERS) return EF_CE_LIMIT;
        chunk->trailers++;
        chunk->state = TRAILER_NAME;
        return EF_CE_NONE;
    case TRAILER_NAME:
        if (byte == ':') chunk->state = TRAILER_VALUE;
        return byte == ':' || ef_token_lower[byte] != 0 ? EF_CE_NONE : EF_CE_TRAILER;
    case TRAILER_VALUE:
        if (byte == '\r') chunk->state = TRAILER_LF;
        return byte == '\r' || !ef_is_control(byte) ? EF_CE_NONE : EF_CE_TRAILER;
    default: /* TRAILER_LF */
        chunk->state = TRAILER_START;
        return byte == '\n' ? EF_CE_NONE : EF_CE_CRLF;
    }
}

/* One byte of framing; an enum ef_chunk_error. */
static int step(ef_chunk *chunk, uint8_t byte) {
    switch (chunk->state) {
    case SIZE:
        return step_size(chunk, byte);
    case SIZE_LF:
        chunk->state = chunk->left > 0 ? DATA : TRAILER_START;
        return byte == '\n' ? EF_CE_NONE : EF_CE_CRLF;
    case DATA_CR:
        chunk->state = DATA_LF;
        return byte == '\r' ? EF_CE_NONE : EF_CE_CRLF;
    case DATA_LF:
        chunk->state = SIZE;
        chunk->digits = 0;
        return byte == '\n' ? EF_CE_NONE : EF_CE_CRLF;
    case END_LF:
        chunk->state = DONE;
        return byte == '\n' ? EF_CE_NONE : EF_CE_CRLF;
    default:
        return chunk->state < SIZE_LF ? step_extension(chunk, byte) : step_trailer(chunk, byte);
    }
}

int ef_chunk_feed(ef_chunk *chunk, const uint8_t *buf, size_t len, size_t *used, const uint8_t **data,
                  size_t *data_len) {
    size_t at = 0;
    size_t lines = len; /* where trailer lines begin in this input */
    *used = 0;
    *data = NULL;
    *data_len = 0;
    if (chunk->error != EF_CE_NONE) return EF_BAD;
    for (; at < len && chunk->state != DONE; at++) {
        if (chunk->state >= TRAILER_START && chunk->state <= TRAILER_LF) {
            if (chunk->state == TRAILER_START && buf[at] == '\r') {
                if (lines < at) break; /* the lines are handed over before their end is */
            } else if (lines == len) {
                lines = at;
            }
        }
        if (chunk->state == DATA) {
            const size_t rest = len - at;
            const size_t n = chunk->left < rest ? (size_t)chunk->left : rest;
            chunk->left -= n;
            if (chunk->left == 0) chunk->state = DATA_CR;
            *data = buf + at;
            *data_len = n;
            *used = at + n;
            return EF_CHUNK_DATA;
        }
        chunk->error = (uint8_t)step(chunk, buf[at]);
        if (chunk->error != EF_CE_NONE) {
            *used = at;
            return EF_BAD;
        }
    }
    *used = at;
    if (lines < at) {
        *data = buf + lines;
        *data_len = at - lines;
        return EF_CHUNK_TRAILER;
    }
    return chunk->state == DONE ? EF_CHUNK_DONE : EF_NEED_MORE;
}

static const char *const texts[EF_CE_COUNT] = {
    [EF_CE_NONE] = "no fault",
    [EF_CE_SIZE] = "malformed chunk size",
    [EF_CE_EXTENSION] = "malformed chunk extension",
    [EF_CE_CRLF] = "chunk not ended by CRLF",
    [EF_CE_TRAILER] = "malformed trailer",
    [EF_CE_LIMIT] = "too many chunk extensions or trailers",
};

const char *ef_chunk_error_text(int error) {
    return error >= 0 && error < EF_CE_COUNT ? texts[error] : "unknown fault";
}

int ef_chunk_in_trailers(const ef_chunk *chunk) {
    return chunk->trailers > 0 || (chunk->state >= TRAILER_NAME && chunk->state <= TRAILER_LF);
}
