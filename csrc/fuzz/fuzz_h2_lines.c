/* fuzz_h2_lines.c - any bytes as a head: pairs lie in it, names are lower-case tokens, nothing in a value ends a line. */
#include "../h2_lines.h"

#include "require.h"

static void require_pairs(const uint8_t *text, size_t len, const ef_h2_pair *pairs, int n, int pseudo) {
    for (int i = 0; i < n; i++) {
        const ef_h2_pair *p = &pairs[i];
        REQUIRE(p->name_len > 0 && (p->flags == 0 || p->flags == EF_H2_PAIR_VARIES));
        if (p->name[0] != ':') {
            REQUIRE(i >= pseudo);
            REQUIRE(p->name >= text && p->name + p->name_len <= text + len);
            REQUIRE(p->value >= text && p->value + p->value_len <= text + len);
        } else {
            REQUIRE(i < pseudo);
        }
        for (size_t j = 0; j < p->name_len; j++)
            REQUIRE(p->name[j] > ' ' && p->name[j] < 0x7f && !(p->name[j] >= 'A' && p->name[j] <= 'Z'));
        for (size_t j = 0; j < p->value_len; j++)
            REQUIRE((p->value[j] >= ' ' || p->value[j] == '\t') && p->value[j] != 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int way = 0; way < 5; way++) {
        ef_h2_pair pairs[12];
        uint8_t *text = exact_copy(data, size);
        const int n = way == 0   ? ef_h2_lines_trailers(text, size, pairs, 12)
                      : way <= 2 ? ef_h2_lines_response(text, size, way == 2, pairs, 12)
                                 : ef_h2_lines_request(text, size, way == 3, way == 4, pairs, 12);
        REQUIRE(n == EF_BAD || (n >= 0 && n <= 12));
        if (n > 0) require_pairs(text, size, pairs, n, way == 0 ? 0 : way <= 2 ? 1 : way == 3 ? 4 : 5);
        free(text);
    }
    return 0;
}
