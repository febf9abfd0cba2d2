/* hello_case.h - a ClientHello made vector by vector, put into records, and looked at in every way: whole at both guard pages and cut
 * off after each byte. All must agree: what is no longer open stays as it is, and nothing changes before `need` bytes are there. */
#ifndef EF_TESTS_HELLO_CASE_H
#define EF_TESTS_HELLO_CASE_H
#include <string.h>

#include "../head.h"
#include "../hello.h"
#include "../limits.h"
#include "check.h"
#include "guard.h"

enum { HANDSHAKE = 22, RECORD_HEADER = 5, RECORD_MOST = 16384 };
enum {
    UNEXPECTED_MESSAGE = 10,
    RECORD_OVERFLOW = 22,
    ILLEGAL_PARAMETER = 47,
    DECODE_ERROR = 50,
    PROTOCOL_VERSION = 70,
    UNRECOGNIZED_NAME = 112
};

/* The lengths that a ClientHello with a name has in it, from the outermost. */
enum level { MESSAGE, SESSION, SUITES, COMPRESSION, EXTENSIONS, EXTENSION, NAME_EXTENSION, NAME_LIST, NAME, LEVELS };

typedef struct bytes {
    size_t n;
    uint8_t data[3 * EF_MAX_HELLO];
} bytes;

static inline void put(bytes *to, const void *data, size_t n) {
    if (n > 0) memcpy(to->data + to->n, data, n);
    to->n += n;
}

static inline void put_number(bytes *to, size_t value, int width) {
    for (int i = width - 1; i >= 0; i--)
        to->data[to->n++] = (uint8_t)(value >> 8 * i);
}

static inline size_t open_vector(bytes *to, int width) {
    put_number(to, 0, width);
    return to->n;
}

/* Tells `wrong` more bytes than there are. */
static inline void close_vector(bytes *to, size_t start, int width, int wrong) {
    const size_t end = to->n, length = (size_t)((long)(end - start) + wrong);
    to->n = start - (size_t)width;
    put_number(to, length, width);
    to->n = end;
}

static inline void put_extension(bytes *to, unsigned type, const void *data, size_t n) {
    put_number(to, type, 2);
    put_number(to, n, 2);
    put(to, data, n);
}

/* A message; each of its lengths is as many bytes wrong as `wrong` says for its level. name NULL: no server_name, and n says how many
 * bytes of padding there are. */
static inline void make_hello(bytes *to, const void *name, size_t n, const int wrong[LEVELS]) {
    static const int right[LEVELS];
    static const uint8_t zeros[EF_MAX_HELLO];
    static const uint8_t suites[] = {0x5a, 0x5a, 0x13, 0x01, 0x13, 0x02};
    static const uint8_t session[32] = {[31] = 0xee};
    const int *w = wrong ? wrong : right;
    to->n = 0;
    put_number(to, 1, 1);
    const size_t message = open_vector(to, 3);
    put_number(to, 0x0303, 2);
    put(to, zeros, 32);
    size_t at = open_vector(to, 1);
    put(to, session, sizeof(session));
    close_vector(to, at, 1, w[SESSION]);
    at = open_vector(to, 2);
    put(to, suites, sizeof(suites));
    close_vector(to, at, 2, w[SUITES]);
    at = open_vector(to, 1);
    put_number(to, 0xff, 1); /* a method that nobody knows: a byte that is no length here */
    put_number(to, 0, 1);
    close_vector(to, at, 1, w[COMPRESSION]);
    const size_t extensions = open_vector(to, 2);
    put_number(to, 0x1a1a, 2); /* GREASE (RFC 8701): an extension that means nothing */
    at = open_vector(to, 2);
    put(to, "\xff\xff\xff", 3);
    close_vector(to, at, 2, w[EXTENSION]);
    if (name == NULL) {
        put_extension(to, 21, zeros, n);
    } else {
        put_number(to, 0, 2);
        const size_t extension = open_vector(to, 2), list = open_vector(to, 2);
        put_number(to, 0, 1);
        at = open_vector(to, 2);
        put(to, name, n);
        close_vector(to, at, 2, w[NAME]);
        close_vector(to, list, 2, w[NAME_LIST]);
        close_vector(to, extension, 2, w[NAME_EXTENSION]);
    }
    put_extension(to, 0x2a2a, "\0", 1);
    close_vector(to, extensions, 2, w[EXTENSIONS]);
    close_vector(to, message, 3, w[MESSAGE]);
}

/* A message with these extensions; NULL: it ends before them, as those of old clients do. */
static inline void make_with(bytes *to, const bytes *extensions) {
    to->n = 0;
    put_number(to, 1, 1);
    const size_t start = open_vector(to, 3);
    put(to,
        "\3\3"
        "0123456789abcdef0123456789abcdef"
        "\0"
        "\0\2\x13\1"
        "\1\0",
        41);
    if (extensions != NULL) {
        put_number(to, extensions->n, 2);
        put(to, extensions->data, extensions->n);
    }
    close_vector(to, start, 3, 0);
}

/* Records of `most` bytes, the last one of what is left. */
static inline void put_records(bytes *to, const bytes *message, size_t most) {
    for (size_t at = 0; at < message->n; at += most) {
        const size_t n = message->n - at < most ? message->n - at : most;
        put_number(to, HANDSHAKE, 1);
        put_number(to, 0x0301, 2);
        put_number(to, n, 2);
        put(to, message->data + at, n);
    }
}

static inline int same_hello(int32_t rc_a, const ef_hello *a, int32_t rc_b, const ef_hello *b) {
    if (rc_a != rc_b) return 0;
    if (rc_a == EF_NEED_MORE) return a->need == b->need;
    if (rc_a == EF_BAD) return a->alert == b->alert;
    if (a->alpn_len != b->alpn_len || memcmp(a->alpn, b->alpn, a->alpn_len) != 0) return 0;
    return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

/* The outcome of all bytes; cut off after every byte, or in long inputs after some. */
static inline int32_t look_all_ways(ef_hello *hello, const uint8_t *data, size_t len) {
    static ef_hello now, before;
    const int32_t rc = ef_hello_scan(guard_end(data, len), len, hello);
    CHECK(same_hello(rc, hello, ef_hello_scan(guard_start(data, len), len, &now), &now));
    int32_t last = EF_NEED_MORE;
    before.need = 0;
    for (size_t cut = 0; cut <= len; cut += cut > 1000 && cut + 200 < len ? 97 : 1) {
        const int32_t part = ef_hello_scan(guard_end(data, cut), cut, &now);
        int holds;
        if (last != EF_NEED_MORE || cut < before.need) { /* the same as with fewer bytes */
            holds = CHECK(same_hello(last, &before, part, &now));
        } else {
            holds = part != EF_NEED_MORE || CHECK(now.need > cut && now.need >= before.need);
        }
        if (!holds) fprintf(stderr, "    cut off after %zu of %zu: %d, need %u\n", cut, len, part, now.need);
        last = part;
        before = now;
    }
    CHECK(same_hello(rc, hello, last, &before));
    return rc;
}

static inline void expect_name(const uint8_t *data, size_t len, size_t whole, const char *name) {
    ef_hello hello;
    int holds = CHECK_EQUAL(look_all_ways(&hello, data, len), whole);
    holds = holds && CHECK_EQUAL(hello.name_len, strlen(name));
    if (holds) CHECK(memcmp(hello.name, name, hello.name_len) == 0);
}

static inline int expect_alert(const uint8_t *data, size_t len, uint8_t alert) {
    ef_hello hello;
    return CHECK_EQUAL(look_all_ways(&hello, data, len), EF_BAD) && CHECK_EQUAL(hello.alert, alert);
}

static inline void expect_need(const uint8_t *data, size_t len, size_t need) {
    ef_hello hello;
    if (CHECK_EQUAL(look_all_ways(&hello, data, len), EF_NEED_MORE)) CHECK_EQUAL(hello.need, need);
}
#endif
