/* fuzz_path.c - any bytes as a path: the normal form is one, stays one, and never climbs or names another host. */
#include "../head.h"
#include "../path.h"
#include "require.h"

static int holds(const uint8_t *path, size_t len, const char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= len; i++)
        if (memcmp(path + i, text, n) == 0) return 1;
    return 0;
}

static int ends_with(const uint8_t *path, size_t len, const char *text) {
    const size_t n = strlen(text);
    return len >= n && memcmp(path + len - n, text, n) == 0;
}

static void require_normal(const uint8_t *path, size_t len, int may_hold_slashes) {
    static const char *const never[] = {"//", "/./", "/../", "/.;", "/..;", "\\", "%00", "%2e", "%2E", "%41", "%7E"};
    REQUIRE(len > 0 && path[0] == '/');
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        REQUIRE(!holds(path, len, never[i]));
    REQUIRE(!ends_with(path, len, "/.") && !ends_with(path, len, "/.."));
    REQUIRE(may_hold_slashes || !(holds(path, len, "%2F") || holds(path, len, "%5C")));
    uint8_t *copy = exact_copy(path, len);
    uint8_t *out = exact_copy(path, len);
    size_t out_len;
    int escaped;
    REQUIRE(ef_path_normalize(copy, len, out, len, &out_len, &escaped) == EF_PATH_SAME);
    REQUIRE(escaped == (holds(path, len, "%2F") || holds(path, len, "%5C")));
    free(out);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *in = exact_copy(data, size);
    uint8_t *out = exact_copy(data, size);
    size_t out_len;
    int escaped;
    const int rc = ef_path_normalize(in, size, out, size, &out_len, &escaped);
    REQUIRE(rc == EF_PATH_SAME || rc == EF_PATH_WRITTEN || rc == EF_BAD);
    if (rc == EF_PATH_WRITTEN) require_normal(out, out_len, 1);
    if (rc == EF_PATH_SAME) require_normal(in, size, 1);

    const size_t normal_len = rc == EF_PATH_WRITTEN ? out_len : 0;
    uint8_t *normal = exact_copy(out, normal_len);

    const int slashes = ef_path_unescape_slashes(in, size, out, size, &out_len);
    if (rc == EF_BAD) REQUIRE(slashes == EF_BAD);
    if (slashes == EF_PATH_WRITTEN) require_normal(out, out_len, 0);
    REQUIRE(slashes == EF_PATH_WRITTEN || slashes == EF_BAD);
    if (rc == EF_PATH_SAME && !escaped)
        REQUIRE(slashes == EF_PATH_WRITTEN && out_len == size && memcmp(in, out, size) == 0);

    if (rc != EF_BAD) { /* without parameters it is a normal form, and has none */
        uint8_t *bare = exact_copy(rc == EF_PATH_SAME ? in : normal, rc == EF_PATH_SAME ? size : normal_len);
        const size_t bare_len = ef_path_strip_parameters(bare, rc == EF_PATH_SAME ? size : normal_len, 0);
        REQUIRE(memchr(bare, ';', bare_len) == NULL);
        require_normal(bare, bare_len, 1);
        free(bare);
    }
    free(normal);

    uint8_t *wide = malloc(3 * size + 1);
    const long encoded = ef_path_encode_raw(in, size, wide, 3 * size);
    REQUIRE(encoded >= (long)size && memchr(wide, '|', (size_t)encoded) == NULL);
    if (encoded > 0) REQUIRE(ef_path_encode_raw(in, size, wide, (size_t)encoded - 1) == EF_BAD);
    free(wide);

    const long decoded = ef_query_decode(in, size, out, size);
    REQUIRE(decoded >= 0 && (size_t)decoded <= size);
    if (decoded > 0) REQUIRE(ef_query_decode(in, size, out, (size_t)decoded - 1) == -1);
    free(out);
    free(in);
    return 0;
}
