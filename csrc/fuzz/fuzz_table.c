/* fuzz_table.c - any bytes as a blob: the gate never reads outside, and what it lets through can be matched and read.
 *
 * The input is tried as it is, and once more with magic, version, size and checksum made right, as a hostile or broken
 * sender would: otherwise no mutation came past the checksum. Exact-size heap copies, so that ASan sees every byte too many.
 */
#include "../head.h"
#include "../route.h"
#include "../table_layout.h"
#include "require.h"

static uint64_t sum; /* of all bytes that readers may touch: keeps the reads from being optimised away */

static void touch(const uint8_t *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        sum += bytes[i];
}

static void match(const ef_blob *blob, const uint8_t *path, size_t path_len) {
    static const uint8_t base[] = "x-a1,2x-a3";
    const ef_span spans[2] = {
        {.name_off = 0, .val_off = 3, .val_len = 3, .name_hash = ef_name_hash(base, 3), .name_len = 3},
        {.name_off = 6, .val_off = 9, .val_len = 1, .name_hash = ef_name_hash(base, 3), .name_len = 3}};
    static const uint8_t query[] = "q=%31&z";
    const ef_blob *fragments[EF_MAX_FRAGMENTS];
    for (uint32_t i = 0; i < blob->n_fragments; i++)
        fragments[i] = i == blob->fragment_index ? blob : NULL;
    const ef_vhost vhost = {blob, blob->n_fragments > 1 ? fragments : NULL, blob->n_fragments, 0};
    const ef_request request = {path, path_len, query, sizeof(query) - 1, EF_M_GET, 2, base, spans};
    ef_route it;
    ef_hit hit;
    size_t len;
    uint32_t hits = 0;
    ef_route_begin(&it, &vhost, &request);
    while (ef_route_next(&it, &hit)) {
        REQUIRE(++hits <= ef_blob_entries(blob));
        REQUIRE(hit.rule < ef_blob_rules(blob) && hit.candidate < ef_blob_entries(blob));
        REQUIRE(hit.prefix_len <= path_len);
        if (hit.regex_path) {
            const uint8_t *pattern = ef_blob_regex(hit.blob, hit.candidate, &len);
            touch(pattern, len);
        }
        for (uint32_t i = 0; i < hit.regex_preds; i++) {
            ef_regex_pred pred;
            REQUIRE(ef_route_pred(&hit, i, &pred) == 0);
            touch(pred.name, pred.name_len);
            touch(pred.pattern, pred.pattern_len);
        }
    }
}

static void try_blob(const uint8_t *data, size_t len) {
    if (ef_table_check(data, len) != EF_T_OK) return;
    const ef_blob *blob = (const ef_blob *)(const void *)data;
    size_t n;
    const uint8_t *bytes = ef_blob_key(blob, &n);
    touch(bytes, n);
    for (uint32_t i = 0; i < ef_blob_rules(blob); i++) {
        bytes = ef_blob_rule(blob, i, &n);
        touch(bytes, n);
    }
    match(blob, (const uint8_t *)"/", 1);
    match(blob, (const uint8_t *)"*", 1);
    for (uint32_t i = 0; i < blob->n_slots; i++) { /* every path that is in it, and one below it */
        const ef_slot *slot = ef_slots(blob) + i;
        if ((slot->n_exact | slot->n_prefix) == 0) continue;
        uint8_t path[UINT16_MAX + 2];
        ef_slot_path(blob, slot);
        memcpy(path, ef_slot_path(blob, slot), slot->path_len);
        memcpy(path + slot->path_len, "/x", 2);
        match(blob, path, slot->path_len);
        match(blob, path, (size_t)slot->path_len + 2);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = exact_copy(data, size);
    try_blob(copy, size);
    if (size >= sizeof(ef_blob)) {
        size &= ~(size_t)7;
        ef_blob *blob = (ef_blob *)(void *)copy;
        blob->magic = EF_TABLE_MAGIC;
        blob->version = EF_TABLE_VERSION;
        blob->size = (uint32_t)size;
        blob->checksum = ef_table_checksum(blob);
        uint8_t *fixed = exact_copy(copy, size);
        try_blob(fixed, size);
        free(fixed);
    }
    free(copy);
    return 0;
}
