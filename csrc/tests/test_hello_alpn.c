/* test_hello_alpn.c - the protocol of a hello that offers one alone (RFC 7301), and all the others, which have none. A list that is
 * malformed is no reason to refuse: whoever answers the hello does that. */
#include "hello_case.h"

enum { ALPN = 16 };

static bytes extensions, message, wire;

static void expect_protocol(const char *protocol, size_t n) {
    ef_hello hello;
    make_with(&message, &extensions);
    for (size_t most = RECORD_MOST; most > 0; most = most == RECORD_MOST ? message.n / EF_MAX_HELLO_RECORDS + 1 : 0) {
        wire.n = 0;
        put_records(&wire, &message, most);
        if (!CHECK_EQUAL(look_all_ways(&hello, wire.data, wire.n), wire.n)) return;
        if (CHECK_EQUAL(hello.alpn_len, n)) CHECK(n == 0 || memcmp(hello.alpn, protocol, n) == 0);
    }
}

/* A hello with this extension alone. */
static void offer(const void *data, size_t n) {
    extensions.n = 0;
    put_extension(&extensions, ALPN, data, n);
}

static void test_one(void) {
    extensions.n = 0;
    expect_protocol("", 0);
    offer("\0\5\4mqtt", 7);
    expect_protocol("mqtt", 4);
    offer("\0\2\1x", 4);
    expect_protocol("x", 1);
    offer("\0\3\2\x0a\x0a", 5); /* GREASE is one as any other (RFC 8701 2) */
    expect_protocol("\x0a\x0a", 2);
    offer("\0\5\4\0A\xff/", 7); /* byte for byte: NUL and case, too */
    expect_protocol("\0A\xff/", 4);
}

static void test_longest(void) {
    uint8_t data[2 + 1 + 255];
    memset(data, 'p', sizeof(data));
    data[0] = 1;
    data[1] = 0;
    data[2] = 255;
    offer(data, sizeof(data));
    expect_protocol((const char *)data + 3, 255);
}

static void test_several(void) {
    offer("\0\14\2h2\10http/1.1", 14);
    expect_protocol("", 0);
    offer("\0\4\1a\1b", 6);
    expect_protocol("", 0);
    offer("\0\2\1a", 4); /* two extensions, which RFC 8446 4.2 forbids: nobody knows which one counts */
    put_extension(&extensions, ALPN, "\0\2\1b", 4);
    expect_protocol("", 0);
    offer("\0\2\1a", 4);
    put_extension(&extensions, ALPN, "\0\4\1b\1c", 6);
    expect_protocol("", 0);
    offer("\0\4\1b\1c", 6);
    put_extension(&extensions, ALPN, "\0\2\1a", 4);
    expect_protocol("", 0);
}

static void test_malformed(void) {
    static const struct {
        const char *data;
        size_t n;
    } none[] = {
        {"", 0},        {"\0", 1},      {"\0\0", 2},      {"\0\1\0", 3},  {"\0\1", 2},      {"\0\2\2a", 4},
        {"\0\3\1a", 4}, {"\0\1\1a", 4}, {"\0\2\1a\0", 5}, {"\0\2\0a", 4}, {"\0\3\1a\0", 5},
    };
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        offer(none[i].data, none[i].n);
        expect_protocol("", 0);
    }
}

/* What comes behind it is read as if it were not there, be it well-formed or not. */
static void test_beside_a_name(void) {
    static const struct {
        const char *data;
        size_t n;
        const char *protocol;
    } lists[] = {{"\0\5\4mqtt", 7, "mqtt"}, {"\0\14\2h2\10http/1.1", 14, ""}, {"\0\5\4mqt", 6, ""}, {"", 0, ""}};
    for (size_t i = 0; i < 2 * sizeof(lists) / sizeof(*lists); i++) {
        const size_t which = i / 2;
        ef_hello hello;
        extensions.n = 0;
        if (i % 2) put_extension(&extensions, 0, "\0\4\0\0\1a", 6);
        put_extension(&extensions, ALPN, lists[which].data, lists[which].n);
        put_extension(&extensions, 0x0a0a, "\0", 1);
        if (i % 2 == 0) put_extension(&extensions, 0, "\0\4\0\0\1a", 6);
        expect_protocol(lists[which].protocol, strlen(lists[which].protocol));
        if (CHECK_EQUAL(look_all_ways(&hello, wire.data, wire.n), wire.n))
            CHECK(hello.name_len == 1 && hello.name[0] == 'a');
    }
}

int main(void) {
    test_one();
    test_longest();
    test_several();
    test_malformed();
    test_beside_a_name();
    return FINISH();
}
