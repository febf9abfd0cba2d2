/* path.c - normal form of a request path, and decoding of query text. See path.h for the rules.
 *
 * In: bytes of a target that the scan accepted. Out: the caller's buffer. Must never decode anything twice, and never yield a path
 * that starts with "//": that would be another authority to whoever resolves it.
 */
#include "path.h"

#include <string.h>

#include "head.h"
#include "internal/charset.h"

static const char hex_digits[16] = "0123456789ABCDEF";

/* Value of the escape at text[at] == '%', or -1. */
static int decode_escape(const uint8_t *text, size_t at, size_t len) {
    if (len - at < 3 || !ef_is(text[at + 1], EF_CLASS_HEX) || !ef_is(text[at + 2], EF_CLASS_HEX)) return -1;
    return (int)(ef_hex_value(text[at + 1]) * 16 + ef_hex_value(text[at + 2]));
}

static int is_slash(int byte) { return byte == '/' || byte == '\\'; }

/* 1 when the path is in normal form beyond doubt. */
static int is_normal(const uint8_t *path, size_t len, int *escaped_slash) {
    uint8_t previous = 0;
    for (size_t i = 0; i < len; i++) {
        const uint8_t byte = path[i];
        if (byte == '/' || byte == '.') {
            if (previous == '/') return 0; /* "//", or a segment that starts with a dot: let the slow path look */
        } else if (byte == '%') {
            const int value = decode_escape(path, i, len);
            if (value <= 0 || ef_is((uint8_t)value, EF_CLASS_UNRESERVED)) return 0;
            if (path[i + 1] >= 'a' || path[i + 2] >= 'a') return 0;
            if (is_slash(value)) *escaped_slash = 1;
            i += 2;
        } else if (byte == '\\') {
            return 0;
        }
        previous = byte;
    }
    return 1;
}

/* Writes the path with its escapes in normal form; returns the length, -1 when one is invalid. */
static long normalize_escapes(const uint8_t *path, size_t len, uint8_t *out, int unescape, int *escaped_slash) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (path[i] == '\\') return -1;
        if (path[i] != '%') {
            out[n++] = path[i];
            continue;
        }
        const int value = decode_escape(path, i, len);
        if (value <= 0) return -1;
        i += 2;
        if (is_slash(value)) *escaped_slash = 1;
        if (ef_is((uint8_t)value, EF_CLASS_UNRESERVED)) {
            out[n++] = (uint8_t)value;
        } else if (unescape && is_slash(value)) {
            out[n++] = '/';
        } else {
            out[n++] = '%';
            out[n++] = (uint8_t)hex_digits[value >> 4];
            out[n++] = (uint8_t)hex_digits[value & 15];
        }
    }
    return (long)n;
}

/* 1 for ".", 2 for "..", 0 for anything else; -1 for either with parameters, which some servers cut off before they resolve it. */
static int classify_dots(const uint8_t *segment, size_t len) {
    size_t dots = 0;
    while (dots < len && dots < 3 && segment[dots] == '.')
        dots++;
    if (dots == 0 || dots == 3) return 0;
    if (dots == len) return (int)dots;
    if (segment[dots] == ';') return -1;
    return len - dots >= 3 && memcmp(segment + dots, "%3B", 3) == 0 ? -1 : 0;
}

/* RFC 3986 5.2.4 in place; returns the new length, -1 for dots with parameters. */
static long remove_dot_segments(uint8_t *path, size_t len) {
    size_t written = 0;
    size_t at = 0; /* always at a slash */
    while (at < len) {
        size_t end = at + 1;
        while (end < len && path[end] != '/')
            end++;
        const int dots = classify_dots(path + at + 1, end - at - 1);
        if (dots < 0) return -1;
        if (dots == 0) {
            memmove(path + written, path + at, end - at);
            written += end - at;
        } else {
            if (dots == 2) { /* the segment before, with its slash */
                while (written > 0 && path[--written] != '/') {
                }
            }
            if (end == len) path[written++] = '/';
        }
        at = end;
    }
    return (long)written;
}

static size_t merge_slashes(uint8_t *path, size_t len) {
    size_t written = 0;
    for (size_t i = 0; i < len; i++)
        if (path[i] != '/' || written == 0 || path[written - 1] != '/') path[written++] = path[i];
    return written;
}

static int normalize(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap, size_t *out_len, int unescape,
                     int *escaped_slash) {
    *escaped_slash = 0;
    *out_len = 0;
    if (len == 0 || path[0] != '/') return EF_BAD;
    if (!unescape && is_normal(path, len, escaped_slash)) return EF_PATH_SAME;
    if (out_cap < len) return EF_BAD;
    long n = normalize_escapes(path, len, out, unescape, escaped_slash);
    if (n >= 0) n = remove_dot_segments(out, (size_t)n);
    if (n < 0) return EF_BAD;
    const size_t merged = merge_slashes(out, (size_t)n);
    if (!unescape && merged == len && memcmp(out, path, len) == 0) return EF_PATH_SAME;
    *out_len = merged;
    return EF_PATH_WRITTEN;
}

int ef_path_normalize(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap, size_t *out_len,
                      int *escaped_slash) {
    return normalize(path, len, out, out_cap, out_len, 0, escaped_slash);
}

int ef_path_unescape_slashes(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap, size_t *out_len) {
    int escaped_slash;
    return normalize(path, len, out, out_cap, out_len, 1, &escaped_slash);
}

size_t ef_path_strip_parameters(uint8_t *path, size_t len, size_t from) {
    size_t written = from;
    for (size_t i = from; i < len; i++) {
        if (path[i] == ';') {
            while (i + 1 < len && path[i + 1] != '/')
                i++;
        } else if (path[i] != '/' || written == 0 || path[written - 1] != '/') {
            path[written++] = path[i];
        }
    }
    return written;
}

long ef_path_encode_raw(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        const int is_raw = !ef_is(path[i], EF_CLASS_PATH);
        if (out_cap - n < (is_raw ? 3u : 1u)) return EF_BAD;
        if (is_raw) {
            out[n++] = '%';
            out[n++] = (uint8_t)hex_digits[path[i] >> 4];
            out[n++] = (uint8_t)hex_digits[path[i] & 15];
        } else {
            out[n++] = path[i];
        }
    }
    return (long)n;
}

long ef_query_decode(const uint8_t *in, size_t len, uint8_t *out, size_t out_cap) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = in[i];
        const int value = byte == '%' ? decode_escape(in, i, len) : -1;
        if (value >= 0) {
            byte = (uint8_t)value;
            i += 2;
        } else if (byte == '+') {
            byte = ' ';
        }
        if (n == out_cap) return -1;
        out[n++] = byte;
    }
    return (long)n;
}
