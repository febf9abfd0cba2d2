/* tables.h - blobs for tests in few words: tables_begin, tables_entry..., tables_end gives a checked blob from malloc.
 *
 * Every entry has a rule of its own, numbered as the entries; its payload is "rule <number>". Predicates are written
 * "name=value" or "name~pattern", several separated by spaces.
 */
#ifndef EF_TESTS_TABLES_H
#define EF_TESTS_TABLES_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../head.h"
#include "../route.h"
#include "check.h"

#define TABLES_WORK (1u << 21)

typedef struct tables {
    ef_build *build;
    uint8_t *work;
    uint32_t rules;
} tables;

static inline int tables_open(tables *t, const char *key, uint32_t n_fragments, uint32_t index, int is_root,
                              size_t work) {
    t->build = malloc(ef_build_sizeof());
    t->work = malloc(work);
    t->rules = 0;
    if (t->build == NULL || t->work == NULL) abort();
    return ef_build_begin(t->build, t->work, work, (const uint8_t *)key, strlen(key), n_fragments, index, is_root);
}

static inline void tables_close(tables *t) {
    free(t->build);
    free(t->work);
}

static inline uint32_t tables_count(const char *preds) {
    uint32_t n = preds[0] != 0;
    for (; *preds; preds++)
        n += *preds == ' ';
    return n;
}

static inline int tables_preds(tables *t, const char *preds) {
    while (*preds) {
        const size_t len = strcspn(preds, " "), name = strcspn(preds, "=~");
        const int rc = ef_build_pred(t->build, (const uint8_t *)preds, name, (const uint8_t *)preds + name + 1,
                                     len - name - 1, preds[name] == '~');
        if (rc < 0) return rc;
        preds += len + (preds[len] == ' ');
    }
    return 0;
}

/* The entry's number, or the error of the call that refused it. */
static inline int tables_entry(tables *t, int kind, const char *path, const char *method, const char *headers,
                               const char *query) {
    char payload[32];
    const int len = snprintf(payload, sizeof payload, "rule %u", t->rules);
    const int rule = ef_build_rule(t->build, (const uint8_t *)payload, (size_t)len);
    if (rule < 0) return rule;
    t->rules++;
    const unsigned number = ef_method_lookup((const uint8_t *)method, strlen(method));
    const int entry = ef_build_entry(t->build, (uint32_t)rule, kind, (const uint8_t *)path, strlen(path), number,
                                     tables_count(headers), tables_count(query));
    if (entry < 0) return entry;
    int rc = tables_preds(t, headers);
    if (rc >= 0) rc = tables_preds(t, query);
    return rc < 0 ? rc : entry;
}

static inline int tables_path(tables *t, int kind, const char *path) { return tables_entry(t, kind, path, "", "", ""); }

/* The blob, 64-byte aligned, to be freed; the builder is closed. */
static inline ef_blob *tables_end(tables *t, size_t *len) {
    const long size = ef_build_end(t->build, NULL, 0);
    if (!CHECK(size > 0)) abort();
    uint8_t *out = aligned_alloc(64, ((size_t)size + 63) & ~(size_t)63);
    if (out == NULL) abort();
    CHECK_EQUAL(ef_build_end(t->build, out, (size_t)size - 1), EF_T_NO_MEMORY);
    CHECK_EQUAL(ef_build_end(t->build, out, (size_t)size), size);
    CHECK_EQUAL(ef_table_check(out, (size_t)size), EF_T_OK);
    if (len != NULL) *len = (size_t)size;
    tables_close(t);
    return (ef_blob *)(void *)out;
}
#endif
