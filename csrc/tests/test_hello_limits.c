/* test_hello_limits.c - lengths that are wrong at each level, and sizes at their limits and one beyond. */
#include "hello_case.h"

static bytes message, wire;

static void wrap(size_t most) {
    wire.n = 0;
    put_records(&wire, &message, most);
}

/* One too many and one too few, where the bytes around leave no other reading. */
static void test_lengths(void) {
    for (int level = SESSION; level < LEVELS; level++) {
        for (int off = -1; off <= 1; off += 2) {
            int wrong[LEVELS] = {0};
            wrong[level] = off;
            make_hello(&message, "example.org", 11, wrong);
            wrap(RECORD_MOST);
            if (!expect_alert(wire.data, wire.n, DECODE_ERROR)) fprintf(stderr, "    level %d, %+d\n", level, off);
            wrap(17);
            if (!expect_alert(wire.data, wire.n, DECODE_ERROR))
                fprintf(stderr, "    records, level %d, %+d\n", level, off);
        }
    }
    int wrong[LEVELS] = {0};
    wrong[MESSAGE] = -1; /* a byte follows it in its record */
    make_hello(&message, "example.org", 11, wrong);
    wrap(RECORD_MOST);
    expect_alert(wire.data, wire.n, UNEXPECTED_MESSAGE);
    expect_alert(wire.data, 9, UNEXPECTED_MESSAGE); /* known as soon as both lengths are */
    expect_alert((const uint8_t *)"\x16\3\1\0\5\1\0\0\2\3\x16\3\1\0\2", 15, UNEXPECTED_MESSAGE);
    wrong[MESSAGE] = 1; /* the rest may be in the next record */
    make_hello(&message, "example.org", 11, wrong);
    wrap(RECORD_MOST);
    expect_need(wire.data, wire.n, wire.n + 1);
    put(&wire, "\x16\3\1\0\1\0", 6);
    expect_alert(wire.data, wire.n, DECODE_ERROR);
}

/* Cut off inside, with a length that says so: each part misses its end. */
static void test_short(void) {
    make_hello(&message, "example.org", 11, NULL);
    const size_t whole = message.n;
    for (size_t n = 4; n < whole; n++) {
        ef_hello hello;
        message.n = 1;
        put_number(&message, n - 4, 3);
        message.n = n;
        wrap(RECORD_MOST);
        if (n == 4 + 34 + 33 + 8 + 3) /* where a hello without extensions ends */
            expect_name(wire.data, wire.n, wire.n, "");
        else if (CHECK_EQUAL(look_all_ways(&hello, wire.data, wire.n), EF_BAD))
            CHECK_EQUAL(hello.alert, DECODE_ERROR);
    }
}

static void make_of_size(size_t n) {
    make_hello(&message, NULL, 0, NULL);
    make_hello(&message, NULL, n - message.n, NULL);
    CHECK_EQUAL(message.n, n);
}

static void test_size(void) {
    make_of_size(EF_MAX_HELLO);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "");
    wrap(EF_MAX_HELLO / EF_MAX_HELLO_RECORDS);
    expect_name(wire.data, wire.n, wire.n, "");
    make_of_size(EF_MAX_HELLO + 1);
    wrap(RECORD_MOST);
    expect_alert(wire.data, wire.n, ILLEGAL_PARAMETER);
    expect_alert(wire.data, 9, ILLEGAL_PARAMETER); /* known as soon as its length is */
    expect_need(wire.data, 8, 9);
    expect_alert((const uint8_t *)"\x16\3\1\x40\0\1\xff\xff\xff", 9, ILLEGAL_PARAMETER);
}

static void test_record(void) {
    make_of_size(RECORD_MOST);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "");
    make_of_size(RECORD_MOST + 1);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "");
    wrap(RECORD_MOST + 1);
    expect_alert(wire.data, wire.n, RECORD_OVERFLOW);
    expect_alert(wire.data, 5, RECORD_OVERFLOW);
}

static void test_record_count(void) {
    make_of_size(4 * EF_MAX_HELLO_RECORDS);
    wrap(4);
    expect_name(wire.data, wire.n, wire.n, "");
    make_of_size(4 * EF_MAX_HELLO_RECORDS + 1);
    wrap(4);
    expect_alert(wire.data, wire.n, RECORD_OVERFLOW);
    expect_need(wire.data, wire.n - 6, wire.n - 5); /* the last record that may be */
    wrap(1);                                        /* bytes of records of one, for as long as it goes */
    expect_alert(wire.data, wire.n, RECORD_OVERFLOW);
}

int main(void) {
    test_lengths();
    test_short();
    test_size();
    test_record();
    test_record_count();
    return FINISH();
}
