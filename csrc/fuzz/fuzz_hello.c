/* fuzz_hello.c - any bytes as a TLS client's first ones: the same answer however they arrive, and none that was given changes before
 * `need` bytes are there. */
#include "../head.h"
#include "../hello.h"
#include "../limits.h"
#include "require.h"

static int same(int32_t rc_a, const ef_hello *a, int32_t rc_b, const ef_hello *b) {
    if (rc_a != rc_b) return 0;
    if (rc_a == EF_NEED_MORE) return a->need == b->need;
    if (rc_a == EF_BAD) return a->alert == b->alert;
    if (a->alpn_len != b->alpn_len || memcmp(a->alpn, b->alpn, a->alpn_len) != 0) return 0;
    return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

static int32_t scan_copy(const uint8_t *data, size_t len, ef_hello *hello) {
    uint8_t *copy = exact_copy(data, len);
    const int32_t rc = ef_hello_scan(copy, len, hello);
    free(copy);
    return rc;
}

static void check_answer(int32_t rc, const ef_hello *hello, size_t len) {
    if (rc == EF_NEED_MORE) {
        REQUIRE(hello->need > len);
        REQUIRE(hello->need <= EF_MAX_HELLO + 5 * EF_MAX_HELLO_RECORDS + 16384 + 5);
        return;
    }
    if (rc == EF_BAD) {
        REQUIRE(hello->alert != 0);
        return;
    }
    REQUIRE(rc > 0 && (size_t)rc <= len);
    REQUIRE(memchr(hello->name, 0, hello->name_len) == NULL);
    for (size_t i = 0; i < hello->name_len; i++)
        REQUIRE(hello->name[i] < 'A' || hello->name[i] > 'Z');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ef_hello whole, part, last;
    const int32_t rc = scan_copy(data, size, &whole);
    check_answer(rc, &whole, size);

    int32_t before = EF_NEED_MORE; /* with one byte less */
    last.need = 0;
    for (size_t cut = 0; cut <= size; cut++) {
        const int32_t now = ef_hello_scan(data, cut, &part);
        check_answer(now, &part, cut);
        if (before != EF_NEED_MORE || cut < last.need) REQUIRE(same(before, &last, now, &part));
        REQUIRE(now != EF_NEED_MORE || part.need >= last.need);
        before = now;
        last = part;
    }
    REQUIRE(same(rc, &whole, before, &last));

    size_t len = 0; /* as a connection does it: looked at when there is what is needed */
    int32_t told = EF_NEED_MORE;
    part.need = 0;
    while (told == EF_NEED_MORE && part.need <= size) {
        len = part.need;
        told = scan_copy(data, len, &part);
    }
    REQUIRE(same(rc, &whole, told, &part));
    return 0;
}
