/* test_path.c - normal form of paths, unescaped slashes, decoded queries; input flush against guard pages at both ends. */
#include "../path.h"

#include "../head.h"
#include "check.h"
#include "guard.h"

static const char same[] = "(same)";
static const char bad[] = "(bad)";

typedef int (*normalizer)(const uint8_t *, size_t, uint8_t *, size_t, size_t *, int *);

static int unescape(const uint8_t *path, size_t len, uint8_t *out, size_t cap, size_t *out_len, int *escaped) {
    *escaped = 0;
    return ef_path_unescape_slashes(path, len, out, cap, out_len);
}

static void expect(normalizer run, const char *path, size_t len, const char *want, int want_escaped) {
    uint8_t out[2000];
    size_t out_len;
    int escaped;
    for (int start = 0; start < 2; start++) {
        const uint8_t *in = start ? guard_start(path, len) : guard_end(path, len);
        const int rc = run(in, len, out, len, &out_len, &escaped); /* room of len is always enough */
        int holds = CHECK_EQUAL(rc, want == bad ? EF_BAD : want == same ? EF_PATH_SAME : EF_PATH_WRITTEN);
        if (rc == EF_PATH_WRITTEN) {
            holds &= CHECK(out_len == strlen(want) && memcmp(out, want, out_len) == 0);
            uint8_t again[2000];
            size_t again_len;
            int again_escaped;
            holds &= CHECK_EQUAL(ef_path_normalize(out, out_len, again, sizeof(again), &again_len, &again_escaped), 0);
            holds &= CHECK_EQUAL(run(in, len, out, len - 1, &again_len, &again_escaped), EF_BAD);
        }
        if (rc != EF_BAD) holds &= CHECK_EQUAL(escaped, want_escaped);
        if (!holds) fprintf(stderr, "    %s -> %.*s, want %s\n", path, (int)out_len, (const char *)out, want);
    }
}

#define PATH(literal, want)    expect(ef_path_normalize, literal, sizeof(literal) - 1, want, 0)
#define ESCAPED(literal, want) expect(ef_path_normalize, literal, sizeof(literal) - 1, want, 1)
#define SLASHES(literal, want) expect(unescape, literal, sizeof(literal) - 1, want, 0)

static void test_normal(void) {
    PATH("/", same);
    PATH("/a", same);
    PATH("/a/b/", same);
    PATH("/.well-known/x", same);
    PATH("/a/...", same);
    PATH("/..a/.b/c..", same);
    PATH("/a.b/c;d=e/%20%C3%A4", same);
    PATH("/a;b/c:d@e!$&'()*+,=~", same);
    PATH("/%252e%252E", same);
    PATH("/.%20x", same);
}

static void test_dots(void) {
    PATH("/a/../b", "/b");
    PATH("/a/./b", "/a/b");
    PATH("/a/%2e%2e/b", "/b");
    PATH("/a/.%2E/b", "/b");
    PATH("/%2E./", "/");
    PATH("/%2e", "/");
    PATH("/.", "/");
    PATH("/..", "/");
    PATH("/../../a", "/a");
    PATH("/a/..", "/");
    PATH("/a/.", "/a/");
    PATH("/a/b/..", "/a/");
    PATH("/a/b/../", "/a/");
    PATH("/a/b/c/../../../../d", "/d");
    PATH("/a/.../..", "/a/");
    PATH("/./.a", "/.a");
}

static void test_slashes(void) {
    PATH("//", "/");
    PATH("//a", "/a");
    PATH("/a//b///c//", "/a/b/c/");
    PATH("/..//a", "/a");
    PATH("/.//a", "/a");
    PATH("/a/..//b", "/b");
    PATH("/a//../b", "/a/b");
    PATH("/a//..", "/a/");
    PATH("///../..", "/");
    ESCAPED("/a%2Fb", same);
    ESCAPED("/a%5Cb", same);
    ESCAPED("/a%2fb", "/a%2Fb");
    ESCAPED("/a%5cb", "/a%5Cb");
    ESCAPED("//a%2F", "/a%2F");
    ESCAPED("/a%2F../b", same);
    ESCAPED("/a%2Fb/../c", "/c");
}

static void test_escapes(void) {
    PATH("/%61%7E%2D%5f", "/a~-_");
    PATH("/%c3%a4%3b", "/%C3%A4%3B");
    PATH("/%25%32%65", "/%252e");
    PATH("/%", bad);
    PATH("/%4", bad);
    PATH("/%4/", bad);
    PATH("/%zz", bad);
    PATH("/%4g", bad);
    PATH("/%g4", bad);
    PATH("/%%41", bad);
    PATH("/%00", bad);
    PATH("/a%00/../b", bad);
    PATH("/%/../b", bad);
    PATH("/%01%1f%7F", "/%01%1F%7F");
    PATH("/%FF", same);
}

static void test_refused(void) {
    PATH("", bad);
    PATH("a", bad);
    PATH("*", bad);
    PATH("/a\\b", bad);
    PATH("/\\", bad);
    PATH("/..;/a", bad);
    PATH("/..;", bad);
    PATH("/.;x/", bad);
    PATH("/a/..;b=c/d", bad);
    PATH("/%2e%2e;/", bad);
    PATH("/..%3B/", bad);
    PATH("/..%3b", bad);
    PATH("/a/../%2e;", bad);
    PATH("/...;/", same);
    PATH("/..%3C", same);
    PATH("/;/..;a;/", bad);
}

static void test_unescape(void) {
    SLASHES("/a", "/a");
    SLASHES("/a%2Fb", "/a/b");
    SLASHES("/a%5cb", "/a/b");
    SLASHES("/a%2F%2fb", "/a/b");
    SLASHES("/a%2F..%2Fb", "/b");
    SLASHES("/%2F%2Fevil.example", "/evil.example");
    SLASHES("/%5C%5Cevil.example", "/evil.example");
    SLASHES("/a%252Fb", "/a%252Fb");
    SLASHES("/a//b", "/a/b");
    SLASHES("/..%2F;", "/;");
    SLASHES("/a%2F..;/b", bad);
    SLASHES("/%2F%00", bad);
}

static void expect_stripped(const char *path, size_t from, const char *want) {
    uint8_t again[200];
    size_t again_len;
    int escaped;
    const size_t len = strlen(path);
    for (int start = 0; start < 2; start++) {
        uint8_t *in = (uint8_t *)(start ? guard_start(path, len) : guard_end(path, len));
        CHECK_EQUAL(ef_path_normalize(in, len, again, sizeof(again), &again_len, &escaped), EF_PATH_SAME);
        const size_t n = ef_path_strip_parameters(in, len, from);
        if (!CHECK(n == strlen(want) && memcmp(in, want, n) == 0))
            fprintf(stderr, "    %s -> %.*s, want %s\n", path, (int)n, (const char *)in, want);
        CHECK_EQUAL(ef_path_normalize(in, n, again, sizeof(again), &again_len, &escaped), EF_PATH_SAME);
    }
}

static void test_parameters(void) {
    expect_stripped("/a/b", 0, "/a/b");
    expect_stripped("/admin;x", 0, "/admin");
    expect_stripped("/a;v=1/b;w;x/c", 0, "/a/b/c");
    expect_stripped("/a;", 0, "/a");
    expect_stripped("/;", 0, "/");
    expect_stripped("/;a/;b", 0, "/");
    expect_stripped("/a/;x/b", 0, "/a/b");
    expect_stripped("/a%3Bx", 0, "/a%3Bx");
    expect_stripped("/...;/x", 0, "/.../x");
    expect_stripped("/a;b/c;d", 4, "/a;b/c");
    expect_stripped("/a;b/c;d", 8, "/a;b/c;d");
    expect_stripped("/a;b/;c", 4, "/a;b/");
}

static void test_raw(void) {
    uint8_t out[100];
    CHECK_EQUAL(ef_path_encode_raw((const uint8_t *)"/a|b%7C", 7, out, 9), 9);
    CHECK(memcmp(out, "/a%7Cb%7C", 9) == 0);
    CHECK_EQUAL(ef_path_encode_raw((const uint8_t *)"/a|b%7C", 7, out, 8), EF_BAD);
    CHECK_EQUAL(ef_path_encode_raw((const uint8_t *)"||", 2, out, 5), EF_BAD);
    CHECK_EQUAL(ef_path_encode_raw((const uint8_t *)"||", 2, out, 6), 6);
    CHECK_EQUAL(ef_path_encode_raw((const uint8_t *)"", 0, out, 0), 0);
    CHECK_EQUAL(ef_path_encode_raw((const uint8_t *)"/a", 2, out, 1), EF_BAD);
}

static void expect_decoded(const char *in, size_t len, const char *want, size_t want_len) {
    uint8_t out[100];
    CHECK_EQUAL(ef_query_decode(guard_end(in, len), len, out, want_len), (long)want_len);
    CHECK(memcmp(out, want, want_len) == 0);
    if (want_len > 0) CHECK_EQUAL(ef_query_decode(guard_end(in, len), len, out, want_len - 1), -1);
}

#define DECODED(in, want) expect_decoded(in, sizeof(in) - 1, want, sizeof(want) - 1)

static void test_query(void) {
    DECODED("", "");
    DECODED("abc", "abc");
    DECODED("a+b%20c%2B", "a b c+");
    DECODED("%00%ff%C3", "\0\xff\xc3");
    DECODED("%", "%");
    DECODED("%4", "%4");
    DECODED("%4g%41", "%4gA");
    DECODED("%%41", "%A");
}

int main(void) {
    test_normal();
    test_dots();
    test_slashes();
    test_escapes();
    test_refused();
    test_unescape();
    test_parameters();
    test_raw();
    test_query();
    return FINISH();
}
