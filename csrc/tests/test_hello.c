/* test_hello.c - whole hellos in one record and in many, their names, and what is no hello. Lengths and limits: test_hello_limits.c,
 * protocols: test_hello_alpn.c */
#include "hello_case.h"

static bytes message, wire;

static void wrap(size_t most) {
    wire.n = 0;
    put_records(&wire, &message, most);
}

static void test_whole(void) {
    make_hello(&message, "example.org", 11, NULL);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, message.n + RECORD_HEADER, "example.org");
    const size_t whole = wire.n;
    put(&wire, "\x14\x03\x03\0\1\1", 6); /* what comes after it is not looked at */
    expect_name(wire.data, wire.n, whole, "example.org");
    put(&wire, "GET", 3);
    expect_name(wire.data, wire.n, whole, "example.org");
}

static void test_records(void) {
    make_hello(&message, "example.org", 11, NULL);
    for (size_t most = (message.n + EF_MAX_HELLO_RECORDS - 1) / EF_MAX_HELLO_RECORDS; most <= message.n; most++) {
        wrap(most);
        const size_t records = (message.n + most - 1) / most;
        expect_name(wire.data, wire.n, message.n + records * RECORD_HEADER, "example.org");
    }
    for (size_t first = 1; first < message.n; first++) { /* two of every size */
        bytes rest = {.n = 0}, start = {.n = 0};
        put(&start, message.data, first);
        put(&rest, message.data + first, message.n - first);
        wire.n = 0;
        put_records(&wire, &start, RECORD_MOST);
        put_records(&wire, &rest, RECORD_MOST);
        expect_name(wire.data, wire.n, wire.n, "example.org");
    }
}

static void test_names(void) {
    char longest[256];
    memset(longest, 'a', 255);
    longest[255] = 0;
    make_hello(&message, longest, 255, NULL);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, longest);
    make_hello(&message, "a", 1, NULL);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "a");
    make_hello(&message, "eXaMPLE.oRG@[`{\xc3\x84", 17,
               NULL); /* lower case of ASCII alone; whether it is a name, others say */
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "example.org@[`{\xc3\x84");

    make_hello(&message, "A.b.", 4, NULL); /* the same name as without the dot */
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "a.b");
    static const char *const empty_labels[] = {".", "..", ".a", "a..", "a..b"};
    for (size_t i = 0; i < sizeof(empty_labels) / sizeof(*empty_labels); i++) {
        make_hello(&message, empty_labels[i], strlen(empty_labels[i]), NULL);
        wrap(RECORD_MOST);
        expect_alert(wire.data, wire.n, UNRECOGNIZED_NAME);
    }

    memset(longest, 'a', 256);
    make_hello(&message, longest, 256, NULL);
    wrap(RECORD_MOST);
    expect_alert(wire.data, wire.n, UNRECOGNIZED_NAME);
    make_hello(&message, "", 0, NULL);
    wrap(RECORD_MOST);
    expect_alert(wire.data, wire.n, DECODE_ERROR);
    for (unsigned at = 0; at < 3; at++) {
        char text[] = "a.b";
        text[at] = 0;
        make_hello(&message, text, 3, NULL);
        wrap(RECORD_MOST);
        expect_alert(wire.data, wire.n, UNRECOGNIZED_NAME);
    }
}

static void test_extensions(void) {
    static bytes extensions;
    make_with(&message, NULL);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "");
    extensions.n = 0;
    make_with(&message, &extensions);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "");
    put_extension(&extensions, 0x0a0a, "", 0); /* GREASE, twice: nobody is to mind */
    put_extension(&extensions, 0x0a0a, "", 0);
    make_with(&message, &extensions);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "");
    put_extension(&extensions, 0, "\0\4\0\0\1a", 6);
    make_with(&message, &extensions);
    wrap(RECORD_MOST);
    expect_name(wire.data, wire.n, wire.n, "a");
    put_extension(&extensions, 0, "\0\4\0\0\1b", 6);
    make_with(&message, &extensions);
    wrap(RECORD_MOST);
    expect_alert(wire.data, wire.n, ILLEGAL_PARAMETER);

    static const struct {
        const char *data;
        size_t n;
    } refused[] = {
        {"", 0},
        {"\0", 1},
        {"\0\0", 2},
        {"\0\1\0", 3},
        {"\0\2\0\0", 4},
        {"\0\3\0\0\0", 5},
        {"\0\4\1\0\1a", 6},          /* a name of another type */
        {"\0\10\0\0\1a\0\0\1b", 10}, /* two names */
        {"\0\10\1\0\1a\0\0\1b", 10}, /* two types */
        {"\0\10\0\0\1a\1\0\1b", 10},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        extensions.n = 0;
        put_extension(&extensions, 0, refused[i].data, refused[i].n);
        make_with(&message, &extensions);
        wrap(RECORD_MOST);
        if (!expect_alert(wire.data, wire.n, DECODE_ERROR)) fprintf(stderr, "    server_name %zu\n", i);
    }
}

/* Encrypted Client Hello (RFC 9849 5): the name outside counts, wherever the extension stands and whatever it holds. */
static void test_encrypted_inner(void) {
    static const char outer[] =
        "\0\0\1\0\1\7\0\2ee\0\x16\0\0\0\x12\0\x10\0\0\rinner.example"; /* an inner name in the clear */
    for (unsigned last = 0; last < 2; last++) {
        static bytes extensions;
        extensions.n = 0;
        if (!last) put_extension(&extensions, 0xfe0d, outer, sizeof(outer) - 1);
        put_extension(&extensions, 0, "\0\x10\0\0\router.example", 18);
        if (last) put_extension(&extensions, 0xfe0d, outer, sizeof(outer) - 1);
        make_with(&message, &extensions);
        wrap(RECORD_MOST);
        expect_name(wire.data, wire.n, wire.n, "outer.example");
    }
}

#define LITERAL(text) (const uint8_t *)(text), sizeof(text) - 1

/* Refused by the first byte that cannot be one of a hello's, whatever follows. */
static void test_others(void) {
    expect_need(LITERAL(""), 1);
    expect_alert(LITERAL("G"), UNEXPECTED_MESSAGE);
    expect_alert(LITERAL("GET / HTTP/1.1\r\n\r\n"), UNEXPECTED_MESSAGE);
    expect_alert(LITERAL("PROXY TCP4 "), UNEXPECTED_MESSAGE);
    expect_alert(LITERAL("\x80\x2e\1\3\1"), UNEXPECTED_MESSAGE); /* as SSL 2 did */
    expect_alert(LITERAL("\x15\3\1\0\2\2\x28"), UNEXPECTED_MESSAGE);
    expect_alert(LITERAL("\x17\3\3\0\1x"), UNEXPECTED_MESSAGE);
    expect_need(LITERAL("\x16"), 2);
    expect_alert(LITERAL("\x16\2"), PROTOCOL_VERSION);
    expect_alert(LITERAL("\x16\4\0\0\1\1"), PROTOCOL_VERSION);
    expect_need(LITERAL("\x16\3"), 5);
    expect_need(LITERAL("\x16\3\xff\0"), 5); /* the minor version says nothing (RFC 8446 5.1) */
    expect_alert(LITERAL("\x16\3\1\0\0"), UNEXPECTED_MESSAGE);
    expect_need(LITERAL("\x16\3\1\0\1"), 6);
    expect_need(LITERAL("\x16\3\1\0\x40"), 6);
    expect_alert(LITERAL("\x16\3\1\0\x40\2"), UNEXPECTED_MESSAGE);
    expect_need(LITERAL("\x16\3\1\0\x40\1"), 9);
    expect_need(LITERAL("\x16\3\1\0\3\1"), 8);
    expect_need(LITERAL("\x16\3\1\0\x40\1\0\0\x3c"), 69);
    expect_need(LITERAL("\x16\3\1\0\1\1"), 7);
    expect_alert(LITERAL("\x16\3\1\0\1\1\x14\3\1"), UNEXPECTED_MESSAGE); /* something else between its parts */
    expect_alert(LITERAL("\x16\3\1\0\1\1\x16\2"), PROTOCOL_VERSION);
    expect_alert(LITERAL("\x16\3\1\0\1\1\x16\3\1\0\0"), UNEXPECTED_MESSAGE);
    expect_alert(LITERAL("\x16\3\1\0\4\1\0\0\0"), DECODE_ERROR);
}

int main(void) {
    test_whole();
    test_records();
    test_names();
    test_extensions();
    test_encrypted_inner();
    test_others();
    return FINISH();
}
