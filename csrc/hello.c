/* hello.c - see hello.h. A cursor goes over the bytes of the handshake message and skips the headers of records between them. */
#include "hello.h"

#include <string.h>

#include "head.h"
#include "limits.h"

enum {
    RECORD_HEADER = 5,
    RECORD_MOST = 16384,
    TYPE_HANDSHAKE = 22,
    CLIENT_HELLO = 1,
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ALPN = 16,
    NAME_HOST = 0,
    ALERT_UNEXPECTED_MESSAGE = 10,
    ALERT_RECORD_OVERFLOW = 22,
    ALERT_ILLEGAL_PARAMETER = 47,
    ALERT_DECODE_ERROR = 50,
    ALERT_PROTOCOL_VERSION = 70,
    ALERT_UNRECOGNIZED_NAME = 112
};

typedef struct cursor {
    const uint8_t *data;
    size_t at;    /* in the input */
    size_t left;  /* bytes of the record from there on */
    uint32_t end; /* bytes of the message, or of the part of it that is looked at, from there on */
} cursor;

static int32_t bad(ef_hello *hello, uint8_t alert) {
    hello->alert = alert;
    return EF_BAD;
}

static uint32_t number(const uint8_t *bytes, int n) {
    uint32_t value = 0;
    for (int i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Copies n bytes (or only passes them), across records that are known to be whole; 0 when the part is shorter. */
static int take(cursor *c, uint8_t *to, uint32_t n) {
    if (n > c->end) return 0;
    c->end -= n;
    while (n) {
        if (c->left == 0) {
            c->left = number(c->data + c->at + 3, 2);
            c->at += RECORD_HEADER;
        }
        uint32_t step = n < c->left ? n : (uint32_t)c->left;
        if (to) {
            memcpy(to, c->data + c->at, step);
            to += step;
        }
        c->at += step;
        c->left -= step;
        n -= step;
    }
    return 1;
}

static int take_number(cursor *c, uint32_t *value, int bytes) {
    uint8_t raw[3];
    if (!take(c, raw, (uint32_t)bytes)) return 0;
    *value = number(raw, bytes);
    return 1;
}

static int pass_vector(cursor *c, int length_bytes) {
    uint32_t n;
    return take_number(c, &n, length_bytes) && take(c, NULL, n);
}

static int32_t read_name(cursor *c, ef_hello *hello) {
    uint32_t list, type, n;
    if (!take_number(c, &list, 2) || list == 0 || list != c->end) return bad(hello, ALERT_DECODE_ERROR);
    if (!take_number(c, &type, 1) || type != NAME_HOST) return bad(hello, ALERT_DECODE_ERROR);
    if (!take_number(c, &n, 2) || n == 0 || n != c->end) return bad(hello, ALERT_DECODE_ERROR);
    if (n >= EF_HELLO_NAME) return bad(hello, ALERT_UNRECOGNIZED_NAME);
    take(c, hello->name, n);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t byte = hello->name[i];
        if (byte == 0) return bad(hello, ALERT_UNRECOGNIZED_NAME);
        if (byte >= 'A' && byte <= 'Z') hello->name[i] = (uint8_t)(byte | 0x20);
        if (byte == '.' && (i == 0 || hello->name[i - 1] == '.')) return bad(hello, ALERT_UNRECOGNIZED_NAME);
    }
    hello->name_len = (uint8_t)(hello->name[n - 1] == '.' ? n - 1 : n); /* RFC 6066 3: a name has no dot at its end */
    return 0;
}

/* What is wrong with it is the business of whoever answers: then there is none. */
static void read_protocol(cursor *c, ef_hello *hello) {
    uint32_t list, n;
    if (!take_number(c, &list, 2) || list != c->end) return;
    if (!take_number(c, &n, 1) || n == 0 || n != c->end) return; /* malformed, or one of several */
    take(c, hello->alpn, n);
    hello->alpn_len = (uint8_t)n;
}

static int32_t read_body(cursor *c, ef_hello *hello) {
    uint32_t size, type, n;
    int seen = 0, lists = 0; /* of names, of protocols */
    if (!take(c, NULL, 34) || !pass_vector(c, 1) || !pass_vector(c, 2) || !pass_vector(c, 1))
        return bad(hello, ALERT_DECODE_ERROR);
    if (c->end == 0) return 0; /* no extensions */
    if (!take_number(c, &size, 2) || size != c->end) return bad(hello, ALERT_DECODE_ERROR);
    while (c->end) {
        if (!take_number(c, &type, 2) || !take_number(c, &n, 2) || n > c->end) return bad(hello, ALERT_DECODE_ERROR);
        uint32_t rest = c->end - n;
        if (type == EXTENSION_ALPN) {
            c->end = n;
            if (lists++ == 0)
                read_protocol(c, hello);
            else
                hello->alpn_len = 0; /* whichever counts */
            n = c->end;              /* what it left */
            c->end += rest;
        }
        if (type != EXTENSION_SERVER_NAME) {
            take(c, NULL, n);
            continue;
        }
        if (seen++) return bad(hello, ALERT_ILLEGAL_PARAMETER);
        c->end = n;
        int32_t result = read_name(c, hello);
        if (result < 0) return result;
        c->end = rest;
    }
    return 0;
}

int32_t ef_hello_scan(const uint8_t *data, size_t len, ef_hello *hello) {
    size_t at = 0;          /* of the next record */
    uint32_t have = 0;      /* bytes of the message in the records before it */
    uint32_t want = 4;      /* bytes of the message, as far as known */
    uint8_t start[4] = {0}; /* type and length of the message */
    hello->alert = 0;
    hello->name_len = 0;
    hello->alpn_len = 0;
    for (unsigned records = 0; have < want; records++) {
        if (len > at && data[at] != TYPE_HANDSHAKE) return bad(hello, ALERT_UNEXPECTED_MESSAGE);
        if (len > at + 1 && data[at + 1] != 3) return bad(hello, ALERT_PROTOCOL_VERSION);
        if (len < at + RECORD_HEADER) {
            hello->need = (uint32_t)at + (len > at + 1 ? RECORD_HEADER : len > at ? 2 : 1);
            return EF_NEED_MORE;
        }
        uint32_t n = number(data + at + 3, 2);
        if (n == 0) return bad(hello, ALERT_UNEXPECTED_MESSAGE);
        if (n > RECORD_MOST) return bad(hello, ALERT_RECORD_OVERFLOW);
        if (records == EF_MAX_HELLO_RECORDS) return bad(hello, ALERT_RECORD_OVERFLOW);
        const uint8_t *body = data + at + RECORD_HEADER;
        size_t there = len - at - RECORD_HEADER;
        uint32_t known = have + (there < n ? (uint32_t)there : n); /* bytes of the message */
        for (uint32_t i = have; i < known && i < 4; i++)
            start[i] = body[i - have];
        if (known >= 1 && start[0] != CLIENT_HELLO) return bad(hello, ALERT_UNEXPECTED_MESSAGE);
        if (known >= 4) {
            want = 4 + number(start + 1, 3);
            if (want > EF_MAX_HELLO) return bad(hello, ALERT_ILLEGAL_PARAMETER);
            if (n > want - have) return bad(hello, ALERT_UNEXPECTED_MESSAGE); /* nothing may follow it in its record */
        }
        if (there < n) {
            uint32_t next = known < 1 ? 1 : known < 4 ? 4 : have + n; /* the type, the length, the record */
            hello->need = (uint32_t)at + RECORD_HEADER + (next < have + n ? next - have : n);
            return EF_NEED_MORE;
        }
        have += n;
        at += RECORD_HEADER + n;
    }
    cursor c = {data, 0, 0, want};
    take(&c, NULL, 4);
    int32_t result = read_body(&c, hello);
    return result < 0 ? result : (int32_t)at;
}
