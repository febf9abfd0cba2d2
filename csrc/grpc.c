/* grpc.c - values of gRPC's header lines.
 *
 * In: bytes of a value. Out: numbers, or that it is none. Must never read a value further than its strict form.
 */
#include "grpc.h"

#include <string.h>

#include "internal/charset.h"

static int ends_type(const uint8_t *value, size_t len, size_t at) {
    return at == len || value[at] == '+' || value[at] == ';' || value[at] == ' ' || value[at] == '\t';
}

static int begins(const uint8_t *value, size_t len, const char *lower) {
    const size_t n = strlen(lower);
    return len >= n && ef_equals_lower(value, lower, n) && ends_type(value, len, n);
}

unsigned ef_grpc_content_type(const uint8_t *value, size_t len) {
    if (len < 16 || (value[12] | 0x20) != 'g') return EF_GRPC_NONE; /* nearly all there are */
    if (begins(value, len, "application/grpc")) return EF_GRPC;
    if (begins(value, len, "application/grpc-web")) return EF_GRPC_WEB;
    return begins(value, len, "application/grpc-web-text") ? EF_GRPC_WEB_TEXT : EF_GRPC_NONE;
}

int64_t ef_grpc_timeout(const uint8_t *value, size_t len) {
    int64_t number = 0;
    if (len < 2 || len > EF_GRPC_TIMEOUT_DIGITS + 1) return -1;
    for (size_t i = 0; i + 1 < len; i++) {
        if (value[i] < '0' || value[i] > '9') return -1;
        number = number * 10 + (value[i] - '0');
    }
    switch (value[len - 1]) {
    case 'H':
        return number * 3600000;
    case 'M':
        return number * 60000;
    case 'S':
        return number * 1000;
    case 'm':
        return number;
    case 'u':
        return (number + 999) / 1000;
    case 'n':
        return (number + 999999) / 1000000;
    default:
        return -1;
    }
}

int ef_grpc_status(const uint8_t *value, size_t len) {
    int number = 0;
    if (len < 1 || len > 3) return -1;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9') return -1;
        number = number * 10 + (value[i] - '0');
    }
    return number;
}
