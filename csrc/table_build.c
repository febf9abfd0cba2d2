/* table_build.c - the builder's calls: each checks its input and appends one record to the log. See table.h. */
#include "head.h"
#include "internal/build.h"
#include "internal/path_hash.h"

size_t ef_build_sizeof(void) { return sizeof(ef_build); }

int ef_build_begin(ef_build *b, uint8_t *work, size_t work_cap, const uint8_t *key, size_t key_len,
                   uint32_t n_fragments, uint32_t fragment_index, int is_root) {
    memset(b, 0, sizeof *b);
    if (n_fragments == 0 || (n_fragments & (n_fragments - 1)) != 0 || n_fragments > EF_MAX_FRAGMENTS) return EF_T_LIMIT;
    if (fragment_index >= n_fragments || (is_root && fragment_index != 0) || (!is_root && n_fragments == 1))
        return EF_T_ORDER;
    if (key_len > EF_MAX_HEAD) return EF_T_LIMIT;
    if (((uintptr_t)work & 7) != 0) return EF_T_BOUNDS;
    if (work_cap < ((key_len + 7) & ~(size_t)7)) return EF_T_NO_MEMORY;
    if (key_len != 0) memcpy(work, key, key_len);
    b->work = work;
    b->cap = work_cap;
    b->used = (key_len + 7) & ~(size_t)7;
    b->key = work;
    b->key_len = (uint32_t)key_len;
    b->n_fragments = n_fragments;
    b->fragment_index = fragment_index;
    b->is_root = is_root != 0;
    return EF_T_OK;
}

void *ef_build_reserve(ef_build *b, size_t bytes) {
    if (!b->failed && bytes > b->cap - b->used) b->failed = EF_T_NO_MEMORY;
    if (b->failed) {
        return NULL;
    }
    void *at = b->work + b->used;
    b->used += bytes;
    return at;
}

static ef_build_record *append(ef_build *b, enum ef_build_kind kind, size_t string_len) {
    const size_t size = (sizeof(ef_build_record) + string_len + 7) & ~(size_t)7;
    ef_build_record *r = ef_build_reserve(b, size);
    if (r == NULL) return NULL;
    memset(r, 0, sizeof *r);
    r->size = (uint32_t)size;
    r->kind = (uint8_t)kind;
    return r;
}

int ef_build_rule(ef_build *b, const uint8_t *payload, size_t len) {
    if (b->preds_due != 0 || b->planned) return EF_T_ORDER;
    if (len > EF_MAX_BLOB || b->n_rules == INT32_MAX) return EF_T_LIMIT;
    ef_build_record *r = append(b, EF_RECORD_RULE, len);
    if (r == NULL) return b->failed;
    r->of.rule.len = (uint32_t)len;
    ef_build_copy(r->bytes, payload, len);
    b->payload_bytes += len;
    return (int)b->n_rules++;
}

static int check_path(const ef_build *b, int kind, const uint8_t *path, size_t len) {
    if (kind == EF_PATH_REGEX) return b->is_root ? EF_T_OK : EF_T_ORDER;
    if (len != 0 && path[0] != '/') return EF_T_PATH;
    if (kind == EF_PATH_EXACT && len == 0) return EF_T_PATH;
    const ef_path_walk walk = ef_path_walk_run(path, len, 0, 1, NULL, NULL);
    if (kind == EF_PATH_PREFIX && len != 0 && (path[len - 1] == '/' || walk.depth > EF_DEEPEST)) return EF_T_PATH;
    if (b->n_fragments == 1) return EF_T_OK;
    const uint32_t fragment = (uint32_t)(walk.hash >> 32) & (b->n_fragments - 1);
    return !b->is_root && fragment == b->fragment_index ? EF_T_OK : EF_T_ORDER;
}

int ef_build_entry(ef_build *b, uint32_t rule, int path_kind, const uint8_t *path, size_t path_len, uint32_t method,
                   uint32_t n_headers, uint32_t n_query) {
    if (b->preds_due != 0 || b->planned || rule >= b->n_rules || path_kind < 0 || path_kind > EF_PATH_REGEX)
        return EF_T_ORDER;
    if (path_len > UINT16_MAX || method >= EF_M_COUNT || n_headers > UINT8_MAX || n_query > UINT8_MAX)
        return EF_T_LIMIT;
    if (b->n_entries == INT32_MAX) return EF_T_LIMIT;
    const int verdict = check_path(b, path_kind, path, path_len);
    if (verdict != EF_T_OK) return verdict;
    ef_build_record *r = append(b, EF_RECORD_ENTRY, path_len);
    if (r == NULL) return b->failed;
    r->path_kind = (uint8_t)path_kind;
    r->n_headers = (uint8_t)n_headers;
    r->n_query = (uint8_t)n_query;
    r->of.entry.rule = rule;
    r->of.entry.len = (uint32_t)path_len;
    r->of.entry.method = method;
    ef_build_copy(r->bytes, path, path_len);
    b->n_regex += path_kind == EF_PATH_REGEX;
    b->headers_due = n_headers;
    b->preds_due = n_headers + n_query;
    return (int)b->n_entries++;
}

int ef_build_pred(ef_build *b, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
                  int is_regex) {
    if (b->preds_due == 0) return EF_T_ORDER;
    if (name_len > UINT16_MAX || value_len > EF_MAX_HEAD) return EF_T_LIMIT;
    ef_build_record *r = append(b, EF_RECORD_PRED, name_len + value_len);
    if (r == NULL) return b->failed;
    r->of.pred.name_len = (uint32_t)name_len;
    r->of.pred.value_len = (uint32_t)value_len;
    r->of.pred.is_regex = is_regex != 0;
    r->of.pred.is_header = b->headers_due != 0;
    ef_build_copy(r->bytes, name, name_len);
    ef_build_copy(r->bytes + name_len, value, value_len);
    b->headers_due -= b->headers_due != 0;
    b->preds_due--;
    b->n_preds++;
    return EF_T_OK;
}

int ef_build_depths(ef_build *b, uint64_t prefix_depths, uint64_t exact_depths, uint32_t max_exact_len) {
    if (!b->is_root || b->planned) return EF_T_ORDER;
    b->prefix_depths |= prefix_depths;
    b->exact_depths |= exact_depths;
    if (max_exact_len > b->max_exact_len) b->max_exact_len = max_exact_len;
    return EF_T_OK;
}
