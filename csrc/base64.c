/* base64.c - four characters are three bytes. */
#include "base64.h"

#define OTHER 255u

static const uint8_t ALPHABET[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static unsigned value_of(uint8_t c) {
    if (c >= 'A' && c <= 'Z') return (unsigned)(c - 'A');
    if (c >= 'a' && c <= 'z') return (unsigned)(c - 'a' + 26);
    if (c >= '0' && c <= '9') return (unsigned)(c - '0' + 52);
    return c == '+' ? 62u : c == '/' ? 63u : OTHER;
}

/* One character more; 0: it cannot stand here. */
static int take(ef_base64 *state, uint8_t c) {
    unsigned value = 0;
    if (c == '=') {
        if (state->here < 2) return 0;
        state->pads++;
    } else {
        value = value_of(c);
        if (value == OTHER || state->pads > 0) return 0;
    }
    state->bits = state->bits << 6 | value;
    state->here++;
    return 1;
}

int64_t ef_base64_decode(ef_base64 *state, const uint8_t *text, size_t len, uint8_t *out) {
    int64_t written = 0;
    for (size_t i = 0; i < len; i++) {
        if (!take(state, text[i])) return EF_BASE64_MALFORMED;
        if (state->here < 4) continue;
        const uint32_t bits = state->bits;
        const unsigned bytes = 3u - state->pads;
        if (bits & ((1u << (8u * state->pads)) - 1u)) return EF_BASE64_MALFORMED; /* what padding cuts off */
        for (unsigned k = 0; k < bytes; k++)
            out[written++] = (uint8_t)(bits >> (16u - 8u * k));
        state->bits = 0;
        state->here = state->pads = 0;
    }
    return written;
}

void ef_base64_encode(const uint8_t *data, size_t len, uint8_t *out) {
    for (size_t i = 0; i < len; i += 3) {
        const size_t here = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)data[i] << 16;
        if (here > 1) bits |= (uint32_t)data[i + 1] << 8;
        if (here > 2) bits |= data[i + 2];
        *out++ = ALPHABET[bits >> 18];
        *out++ = ALPHABET[bits >> 12 & 63u];
        *out++ = here > 1 ? ALPHABET[bits >> 6 & 63u] : (uint8_t)'=';
        *out++ = here > 2 ? ALPHABET[bits & 63u] : (uint8_t)'=';
    }
}
