/* test_h2_guard.c - every budget: what it lets pass, and the first that it does not. */
#include "../h2_guard.h"

#include <string.h>

#include "check.h"

static ef_h2_guard guard;

static int frame(unsigned type, unsigned flags, size_t length) {
    return ef_h2_guard_frame(&guard, type, flags, length, 0);
}

/* How many of `most` pass before one does not. */
static unsigned passes(unsigned type, unsigned flags, size_t length, unsigned most, int breach) {
    for (unsigned i = 0; i < most; i++) {
        const int rc = frame(type, flags, length);
        if (rc == EF_H2_CALM) continue;
        CHECK_EQUAL(rc, breach);
        return i;
    }
    return most;
}

static void test_resets_leak_with_time(void) {
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 5000);
    for (unsigned i = 0; i < EF_H2_RESETS; i++)
        CHECK_EQUAL(ef_h2_guard_reset(&guard, 5000), EF_H2_CALM);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 5000), EF_H2_B_RESETS);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 5030), EF_H2_B_RESETS);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 5031), EF_H2_CALM); /* 33 a second */
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 5031), EF_H2_B_RESETS);
    int64_t now = 100000;
    for (int second = 0; second < 100; second++, now += 1000) /* for ever, at that rate */
        for (unsigned i = 0; i < EF_H2_RESETS_RATE; i++)
            CHECK_EQUAL(ef_h2_guard_reset(&guard, now), EF_H2_CALM);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, INT64_MAX / 100000), EF_H2_CALM);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 0), EF_H2_CALM); /* a clock that goes back gives nothing */
}

static void test_cancels_of_a_backend(void) {
    ef_h2_guard_begin_backend(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    for (unsigned i = 0; i < EF_H2_CANCELS; i++)
        CHECK_EQUAL(ef_h2_guard_reset(&guard, 0), EF_H2_CALM);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 0), EF_H2_B_RESETS);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 333), EF_H2_B_RESETS);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 334), EF_H2_CALM); /* 3 a second */
    CHECK_EQUAL(ef_h2_guard_reset(&guard, 334), EF_H2_B_RESETS);
}

static void test_continuations(void) {
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    for (int block = 0; block < 3; block++) {
        CHECK_EQUAL(frame(EF_H2_F_HEADERS, 0, 10), EF_H2_CALM);
        CHECK_EQUAL(passes(EF_H2_F_CONTINUATION, 0, 10, 2 + EF_H2_CONTINUATIONS, 0), 2 + EF_H2_CONTINUATIONS);
    }
    CHECK_EQUAL(frame(EF_H2_F_CONTINUATION, 0, 10), EF_H2_B_CONTINUATIONS);
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    frame(EF_H2_F_HEADERS, 0, 10);
    CHECK_EQUAL(frame(EF_H2_F_CONTINUATION, 4, 0), EF_H2_B_CONTINUATIONS);
}

static void test_settings_and_pings(void) {
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    CHECK_EQUAL(frame(EF_H2_F_SETTINGS, 0, 6 * EF_H2_SETTINGS), EF_H2_CALM);
    CHECK_EQUAL(frame(EF_H2_F_SETTINGS, 0, 6 * EF_H2_SETTINGS + 6), EF_H2_B_SETTINGS);
    for (int i = 0; i < 2; i++) {
        ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
        const unsigned type = i ? EF_H2_F_PING : EF_H2_F_SETTINGS;
        CHECK_EQUAL(passes(type, EF_H2_FLAG_ACK, 0, 1000, 0), 1000); /* those owe no answer */
        CHECK_EQUAL(passes(type, 0, i ? 8 : 0, 1000, EF_H2_B_ACKS), EF_H2_ACKS);
        ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
        for (int round = 0; round < 1000; round++) {
            CHECK_EQUAL(frame(type, 0, i ? 8 : 0), EF_H2_CALM);
            ef_h2_guard_sent(&guard, type, EF_H2_FLAG_ACK, 0, 0);
        }
        CHECK_EQUAL(guard.acks, 0);
    }
}

static void test_overhead(void) {
    static const unsigned cheap[][2] = {{EF_H2_F_DATA, 0}, {EF_H2_F_PRIORITY, 5}, {77, 0}, {EF_H2_F_PING, 8}};
    for (size_t i = 0; i < sizeof(cheap) / sizeof(cheap[0]); i++) {
        const unsigned size = 9 + cheap[i][1];
        ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
        const unsigned most = (EF_H2_OVERHEAD * (EF_H2_OVERHEAD_FREE + 1) - 1) / size;
        CHECK_EQUAL(passes(cheap[i][0], EF_H2_FLAG_ACK, cheap[i][1], most + 10, EF_H2_B_OVERHEAD), most);
    }
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0); /* small bodies are no abuse */
    CHECK_EQUAL(passes(EF_H2_F_DATA, 0, 2, 2000000, 0), 2000000);
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0); /* padding is */
    unsigned n = 0;
    while (n < 100000 && frame(EF_H2_F_DATA, 8, 257) == EF_H2_CALM) {
        ef_h2_guard_padding(&guard, 257);
        n++;
    }
    CHECK(n < 32000);
}

/* Who only takes: a stream of small messages, or a long body, and a question for each part of it. */
static void test_a_long_answer_brings_many_pings(void) {
    static const size_t parts[] = {20, 16384};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
        for (unsigned n = 0; n < 2000000; n++) {
            ef_h2_guard_sent(&guard, EF_H2_F_DATA, 0, parts[i], 0);
            CHECK_EQUAL(frame(EF_H2_F_PING, 0, 8), EF_H2_CALM);
            ef_h2_guard_sent(&guard, EF_H2_F_PING, EF_H2_FLAG_ACK, 8, 0);
        }
    }
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    ef_h2_guard_sent(&guard, EF_H2_F_HEADERS, 0, 1000, 0);
    ef_h2_guard_sent(&guard, EF_H2_F_PING, EF_H2_FLAG_ACK, 8, 0);
    CHECK_EQUAL(guard.sent, 1000);
    unsigned n = 0; /* and no more than what it pays for */
    while (n < 2000000 && frame(EF_H2_F_PRIORITY, 0, 5) == EF_H2_CALM)
        n++;
    CHECK_EQUAL(n, (EF_H2_OVERHEAD * (EF_H2_OVERHEAD_FREE + 1000 + 1) - 1) / 14);
}

/* Frames without a byte of body, padded or not: a burst, then a rate. Frames that end their stream, and bodies, do not count. */
static void test_empty_data(void) {
    static const uint8_t frames[][12] = {{0, 0, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 3, 0, 8, 0, 0, 0, 1, 2, 0, 0}};
    static const uint8_t others[][12] = {{0, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 3, 0, 8, 0, 0, 0, 1, 1, 'a', 0}};
    for (size_t i = 0; i < 2; i++) {
        const size_t size = i ? 12 : 9;
        int64_t now = 5000;
        for (int is_backend = 0; is_backend < 2; is_backend++) {
            ef_h2_guard_begin_backend(&guard, EF_DEFAULT_REQUEST_HEAD, now);
            guard.is_backend = (uint8_t)is_backend;
            for (unsigned n = 0; n < EF_H2_EMPTY; n++) {
                CHECK_EQUAL(ef_h2_guard_feed(&guard, frames[i], size, now), EF_H2_CALM);
                CHECK_EQUAL(ef_h2_guard_feed(&guard, others[1], 12, now), EF_H2_CALM);
            }
            CHECK_EQUAL(ef_h2_guard_feed(&guard, frames[i], size, now), EF_H2_B_OVERHEAD);
            guard.left = 0;                               /* a breach ends the feed within the frame */
            for (int second = 0; second < 50; second++) { /* for ever, at that rate */
                now += 1000;
                for (unsigned n = 0; n < EF_H2_EMPTY_RATE; n++)
                    CHECK_EQUAL(ef_h2_guard_feed(&guard, frames[i], size, now), EF_H2_CALM);
            }
            CHECK_EQUAL(ef_h2_guard_feed(&guard, frames[i], size, now), EF_H2_B_OVERHEAD);
        }
    }
    ef_h2_guard_begin_backend(&guard, EF_DEFAULT_REQUEST_HEAD, 0); /* ends of streams */
    for (unsigned n = 0; n < 50000; n++)
        CHECK_EQUAL(ef_h2_guard_feed(&guard, others[0], 9, 0), EF_H2_CALM);
}

static void test_updates(void) {
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    CHECK_EQUAL(passes(EF_H2_F_WINDOW_UPDATE, 0, 4, 10000, EF_H2_B_UPDATES), EF_H2_UPDATES_FREE);
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    ef_h2_guard_sent(&guard, EF_H2_F_DATA, 0, 1, 0);
    ef_h2_guard_stream(&guard, 0);
    CHECK_EQUAL(passes(EF_H2_F_WINDOW_UPDATE, 0, 4, 10000, EF_H2_B_UPDATES), EF_H2_UPDATES_FREE + EF_H2_UPDATES + 2);
}

static void test_a_long_body_brings_many_updates(void) {
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    for (unsigned i = 0; i < 2000000; i++) {
        ef_h2_guard_sent(&guard, EF_H2_F_DATA, 0, 16384, 0);
        CHECK_EQUAL(frame(EF_H2_F_WINDOW_UPDATE, 0, 4), EF_H2_CALM);
    }
}

static void test_backends(void) {
    static const uint8_t reset[] = {0, 0, 4, EF_H2_F_RST_STREAM, 0, 0, 0, 0, 1, 0, 0, 0, 7};
    ef_h2_guard_begin_backend(&guard, EF_DEFAULT_RESPONSE_HEAD, 0);
    for (unsigned i = 0; i < 2 * EF_H2_RESETS; i++) /* its first bytes are a frame's; we have opened what it resets */
        CHECK_EQUAL(ef_h2_guard_feed(&guard, reset, sizeof(reset), 0), EF_H2_CALM);
    CHECK_EQUAL(guard.resets.level, 0);
}

static void test_refused(void) {
    int64_t now = 5000;
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, now);
    for (unsigned i = 0; i < EF_H2_REFUSED; i++)
        CHECK_EQUAL(ef_h2_guard_refuse(&guard, now), EF_H2_CALM);
    CHECK_EQUAL(ef_h2_guard_refuse(&guard, now), EF_H2_B_REFUSED);
    for (int second = 0; second < 100; second++) { /* a client that lives long is refused now and then */
        now += 1000;
        for (unsigned i = 0; i < EF_H2_REFUSED_RATE; i++)
            CHECK_EQUAL(ef_h2_guard_refuse(&guard, now), EF_H2_CALM);
    }
    CHECK_EQUAL(ef_h2_guard_refuse(&guard, now), EF_H2_B_REFUSED);
    CHECK_EQUAL(ef_h2_guard_reset(&guard, now), EF_H2_CALM); /* a bucket of its own */
}

static void test_progress(void) {
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 1000);
    CHECK_EQUAL(ef_h2_guard_idle(&guard, 1999, 1000), EF_H2_CALM);
    CHECK_EQUAL(ef_h2_guard_idle(&guard, 2000, 1000), EF_H2_B_STALL);
    CHECK_EQUAL(ef_h2_guard_idle(&guard, 2000, 0), EF_H2_CALM); /* 0: no deadline */
    static const struct {
        unsigned type;
        size_t length;
        int is_sent, counts;
    } cases[] = {
        {EF_H2_F_DATA, 1, 0, 1},          {EF_H2_F_DATA, 0, 0, 0}, {EF_H2_F_WINDOW_UPDATE, 4, 0, 0},
        {EF_H2_F_PING, 8, 0, 0},          {EF_H2_F_DATA, 1, 1, 1}, {EF_H2_F_DATA, 0, 1, 0},
        {EF_H2_F_HEADERS, 1, 1, 1},       {EF_H2_F_PING, 8, 1, 0}, {EF_H2_F_PRIORITY, 5, 0, 0},
        {EF_H2_F_WINDOW_UPDATE, 4, 1, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 1000);
        if (cases[i].is_sent)
            ef_h2_guard_sent(&guard, cases[i].type, 0, cases[i].length, 1500);
        else
            ef_h2_guard_frame(&guard, cases[i].type, 0, cases[i].length, 1500);
        CHECK_EQUAL(ef_h2_guard_idle(&guard, 2000, 1000), cases[i].counts ? EF_H2_CALM : EF_H2_B_STALL);
    }
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 1000);
    ef_h2_guard_stream(&guard, 1500);
    CHECK_EQUAL(ef_h2_guard_idle(&guard, 2000, 1000), EF_H2_CALM);
}

/* The same bytes in any pieces give the same counts. */
static void test_bytes(void) {
    static const uint8_t bytes[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                   "\0\0\0\4\0\0\0\0\0"           /* SETTINGS */
                                   "\0\0\5\1\4\0\0\0\1abcde"      /* HEADERS */
                                   "\0\0\6\0\10\0\0\0\1\2abc\0\0" /* DATA: 2 of padding */
                                   "\0\0\0\0\10\0\0\0\1"          /* padded, and empty */
                                   "\0\0\4\3\0\0\0\0\1\0\0\0\10"  /* RST_STREAM */
                                   "\0\0\4\10\0\0\0\0\0\0\0\0\1"; /* WINDOW_UPDATE */
    const size_t len = sizeof(bytes) - 1;
    for (size_t step = 1; step <= len; step++) {
        ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
        for (size_t at = 0; at < len; at += step) {
            const size_t n = len - at < step ? len - at : step;
            CHECK_EQUAL(ef_h2_guard_feed(&guard, bytes + at, n, 0), EF_H2_CALM);
        }
        CHECK_EQUAL(guard.received, len - EF_H2_PREFACE - 13); /* the update has a budget of its own */
        CHECK_EQUAL(guard.payload, 5 + 6 - 3);
        CHECK_EQUAL(guard.acks, 1);
        CHECK_EQUAL(guard.updates, 1);
        CHECK_EQUAL(guard.resets.level, 1000);
        CHECK_EQUAL(guard.left, 0);
        CHECK_EQUAL(guard.got, 0);
    }
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    CHECK_EQUAL(ef_h2_guard_feed(&guard, bytes, EF_H2_PREFACE, 0), EF_H2_CALM);
    unsigned n = 0;
    while (n < 2000 && ef_h2_guard_feed(&guard, bytes + len - 26, 13, 0) == EF_H2_CALM)
        n++;
    CHECK_EQUAL(n, EF_H2_RESETS);
}

/* What is left is where the next call goes on, also behind a head that says how much padding it has. */
static void test_some_requests(void) {
    static const uint8_t bytes[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                   "\0\0\1\1\5\0\0\0\1a"
                                   "\0\0\1\1\15\0\0\0\3\0"
                                   "\0\0\1\1\5\0\0\0\5a";
    static const size_t ends[] = {EF_H2_PREFACE + 10 + 10, EF_H2_PREFACE + 30};
    size_t at = 0;
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    for (size_t i = 0; i < 2; i++) {
        size_t n = sizeof(bytes) - 1 - at;
        CHECK_EQUAL(ef_h2_guard_feed_some(&guard, bytes + at, &n, 2, 0), EF_H2_CALM);
        at += n;
        CHECK_EQUAL(at, ends[i]);
    }
    CHECK_EQUAL(guard.received, 30);
    CHECK_EQUAL(guard.left, 0);
}

/* A frame as its bytes, cut at `cut`; what it makes of a connection that is well so far. */
static uint8_t tell(unsigned type, unsigned flags, uint32_t stream, const char *payload, size_t len, size_t cut) {
    uint8_t bytes[32] = {0, 0, (uint8_t)len,           (uint8_t)type,  (uint8_t)flags,
                         0, 0, (uint8_t)(stream >> 8), (uint8_t)stream};
    if (len > 0) memcpy(bytes + 9, payload, len);
    CHECK_EQUAL(ef_h2_guard_feed(&guard, bytes, cut < 9 + len ? cut : 9 + len, 0), EF_H2_CALM);
    if (cut < 9 + len) CHECK_EQUAL(ef_h2_guard_feed(&guard, bytes + cut, 9 + len - cut, 0), EF_H2_CALM);
    const uint8_t error = guard.error;
    guard.error = 0;
    return error;
}

static void begin(void) {
    static const uint8_t preface[EF_H2_PREFACE] = {0};
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, 0);
    CHECK_EQUAL(ef_h2_guard_feed(&guard, preface, sizeof(preface), 0), EF_H2_CALM);
}

static void test_priorities_that_are_none(void) {
    begin();
    for (size_t cut = 0; cut < 15; cut++) {
        CHECK_EQUAL(tell(EF_H2_F_PRIORITY, 0, 0, "\0\0\0\1\20", 5, cut), EF_H2_PROTOCOL_ERROR);
        CHECK_EQUAL(tell(EF_H2_F_PRIORITY, 0, 257, "\0\0\1\1\20", 5, cut), EF_H2_PROTOCOL_ERROR);
        CHECK_EQUAL(tell(EF_H2_F_PRIORITY, 0, 257, "\200\0\1\1\20", 5, cut), EF_H2_PROTOCOL_ERROR); /* exclusive */
        CHECK_EQUAL(tell(EF_H2_F_PRIORITY, 0, 257, "\0\0\0\1\20", 5, cut), 0);
        CHECK_EQUAL(tell(EF_H2_F_PRIORITY, 0, 257, "\0\0\1\1", 4, cut), 0); /* the library's: FRAME_SIZE_ERROR */
        CHECK_EQUAL(tell(EF_H2_F_PRIORITY, 0, 257, "", 0, cut), 0);
    }
    CHECK_EQUAL(guard.left, 0);
    CHECK_EQUAL(guard.got, 0);
}

static void test_streams_that_have_ended(void) {
    const uint32_t behind = 1 + 2 * EF_H2_ENDED_LAST;
    begin();
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, 1, "a", 1, 10), 0); /* it is idle: the library's */
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 4, 1, "a", 1, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, 1, "a", 1, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 5, 1, "a", 1, 10), 0); /* trailers */
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, 1, "a", 1, 10), EF_H2_STREAM_CLOSED);
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 5, 1, "a", 1, 10), EF_H2_STREAM_CLOSED);
    CHECK_EQUAL(tell(EF_H2_F_RST_STREAM, 0, 1, "\0\0\0\10", 4, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_PRIORITY, 0, 1, "\0\0\0\3\20", 5, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 4, 7, "a", 1, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_RST_STREAM, 0, 7, "\0\0\0\10", 4, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, 7, "a", 1, 10), EF_H2_STREAM_CLOSED);
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 4, 3, "a", 1, 10), 0); /* it was passed over: the library's, too */
    for (uint32_t stream = 9; stream < behind; stream += 2) {
        CHECK_EQUAL(tell(EF_H2_F_HEADERS, 5, stream, "a", 1, 10), 0);
        CHECK_EQUAL(tell(EF_H2_F_DATA, 0, stream, "a", 1, 10), EF_H2_STREAM_CLOSED);
        CHECK_EQUAL(tell(EF_H2_F_DATA, 0, 1, "a", 1, 10), EF_H2_STREAM_CLOSED);
    }
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 4, behind, "a", 1, 10), 0); /* its place was that of the first one */
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, behind, "a", 1, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, 1, "a", 1, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, behind - 2, "a", 1, 10), EF_H2_STREAM_CLOSED);
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 4, 3 * behind, "a", 1, 10), 0); /* all others are too old */
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, 3 * behind, "a", 1, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_DATA, 0, behind - 2, "a", 1, 10), 0);
    for (uint32_t stream = 2 * behind + 1; stream < 3 * behind; stream += 2)
        CHECK_EQUAL(tell(EF_H2_F_DATA, 0, stream, "", 0, 10), 0);
    ef_h2_guard_begin_backend(&guard, EF_DEFAULT_RESPONSE_HEAD, 0); /* who answers on streams of ours */
    CHECK_EQUAL(tell(EF_H2_F_HEADERS, 5, 3, "a", 1, 10), 0);
    CHECK_EQUAL(tell(EF_H2_F_DATA, 5, 3, "a", 1, 10), 0);
}

int main(void) {
    test_priorities_that_are_none();
    test_streams_that_have_ended();
    test_bytes();
    test_some_requests();
    test_resets_leak_with_time();
    test_cancels_of_a_backend();
    test_continuations();
    test_settings_and_pings();
    test_overhead();
    test_a_long_answer_brings_many_pings();
    test_empty_data();
    test_updates();
    test_a_long_body_brings_many_updates();
    test_backends();
    test_refused();
    test_progress();
    for (int i = -1; i <= EF_H2_B_COUNT; i++)
        CHECK(ef_h2_breach_name(i) != NULL && strlen(ef_h2_breach_name(i)) > 0);
    return FINISH();
}
