/* table_plan.c - from the log to a layout: paths are grouped, the slot table is sized, names are interned. See build.h. */
#include "internal/build.h"
#include "internal/path_hash.h"
#include "map.h"

/* Odd constants to try, so that no set of paths is slow under all of them by chance. */
static const uint64_t multipliers[] = {0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u,
                                       0xD6E8FEB86659FD93u, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu,
                                       0xFF51AFD7ED558CCDu, 0xC4CEB9FE1A85EC53u};
#define GOOD_PROBE 16u /* take the first multiplier that does as well */

static uint32_t slots_for(uint32_t n) {
    uint32_t slots = 2;
    while (slots / 2 < n)
        slots *= 2;
    return slots;
}

/* Gather the entries of each path into a group; regex paths have none. */
static int plan_groups(ef_build *b, const ef_build_record *end) {
    const uint32_t n = b->n_entries - b->n_regex;
    if (n == 0) return EF_T_OK;
    b->groups = ef_build_reserve(b, sizeof(ef_build_group) * (size_t)n);
    const uint32_t mask = slots_for(n) - 1;
    uint32_t *table = ef_build_reserve(b, 4 * ((size_t)mask + 1)); /* group number + 1 */
    if (table == NULL || b->groups == NULL) return b->failed;
    memset(table, 0, 4 * ((size_t)mask + 1));
    for (ef_build_record *r = ef_build_first(b); r != end; r = ef_build_next(r)) {
        if (r->kind != EF_RECORD_ENTRY || r->path_kind == EF_PATH_REGEX) continue;
        const ef_path_walk walk = ef_path_walk_run(r->bytes, r->of.entry.len, 0, 1, NULL, NULL);
        uint32_t at = (uint32_t)(walk.hash * multipliers[1] >> 32) & mask;
        for (; table[at] != 0; at = (at + 1) & mask) {
            const ef_build_group *g = b->groups + table[at] - 1;
            if (g->hash == walk.hash && g->len == r->of.entry.len && memcmp(g->path, r->bytes, g->len) == 0) break;
        }
        if (table[at] == 0) {
            ef_build_group *g = b->groups + b->n_groups;
            memset(g, 0, sizeof *g);
            g->hash = walk.hash;
            g->path = r->bytes;
            g->len = r->of.entry.len;
            g->depth = walk.depth <= EF_DEEPEST ? walk.depth : EF_DEEPEST;
            table[at] = ++b->n_groups;
        }
        r->of.entry.group = table[at] - 1;
        ef_build_group *g = b->groups + r->of.entry.group;
        if (g->n_exact + g->n_prefix == UINT16_MAX) return EF_T_LIMIT;
        if (r->path_kind == EF_PATH_EXACT) {
            g->n_exact++;
            b->exact_depths |= 1ull << g->depth;
            if (g->len > b->max_exact_len) b->max_exact_len = g->len;
        } else {
            g->n_prefix++;
            b->prefix_depths |= 1ull << g->depth;
        }
    }
    return EF_T_OK;
}

/* Longest probe when the groups are put into `slots` (n_slots flags, cleared here) in order; gives up above `limit`. */
static uint32_t try_slots(const ef_build *b, uint8_t *slots, uint32_t n_slots, uint64_t multiplier, uint32_t limit) {
    const unsigned shift = 64u - (unsigned)__builtin_ctz(n_slots);
    uint32_t worst = 0;
    memset(slots, 0, n_slots);
    for (uint32_t i = 0; i < b->n_groups; i++) {
        uint32_t at = (uint32_t)(b->groups[i].hash * multiplier >> shift);
        uint32_t probe = 1;
        for (; slots[at] != 0; at = (at + 1) & (n_slots - 1))
            probe++;
        if (probe > limit) return probe;
        slots[at] = 1;
        if (probe > worst) worst = probe;
    }
    return worst;
}

/* Size and multiplier of the slot table: the smallest table at most half full, larger only against hostile paths. */
static int plan_slots(ef_build *b) {
    if (b->n_groups == 0) return EF_T_OK;
    const uint32_t least = slots_for(b->n_groups);
    const size_t mark = b->used;
    uint8_t *slots = ef_build_reserve(b, 4 * (size_t)least);
    if (slots == NULL) return b->failed;
    b->used = mark;
    b->max_probe = EF_MAX_PROBE + 1;
    for (uint32_t n = least; n <= 4 * least && b->max_probe > EF_MAX_PROBE; n *= 2) {
        for (size_t i = 0; i < sizeof multipliers / sizeof *multipliers && b->max_probe > GOOD_PROBE; i++) {
            const uint32_t worst = try_slots(b, slots, n, multipliers[i], b->max_probe - 1);
            if (worst >= b->max_probe) continue;
            b->max_probe = worst;
            b->multiplier = multipliers[i];
            b->n_slots = n;
        }
    }
    return b->max_probe <= EF_MAX_PROBE ? EF_T_OK : EF_T_LIMIT;
}

/* Give every string its place, in log order: values as often as they come, each distinct name once. */
static int plan_strings(ef_build *b, const ef_build_record *end, uint64_t *at) {
    const uint32_t mask = slots_for(b->n_preds) - 1;
    ef_build_record **names = ef_build_reserve(b, sizeof *names * ((size_t)mask + 1));
    if (names == NULL) return b->failed;
    memset(names, 0, sizeof *names * ((size_t)mask + 1));
    for (ef_build_record *r = ef_build_first(b); r != end; r = ef_build_next(r)) {
        if (r->kind == EF_RECORD_ENTRY && r->path_kind == EF_PATH_REGEX) *at += r->of.entry.len;
        if (r->kind != EF_RECORD_PRED) continue;
        const uint32_t len = r->of.pred.name_len;
        uint32_t i = (uint32_t)ef_hash64(0, r->bytes, len, 0) & mask;
        for (; names[i] != NULL; i = (i + 1) & mask) {
            if (names[i]->of.pred.name_len == len && memcmp(names[i]->bytes, r->bytes, len) == 0) break;
        }
        if (names[i] == NULL) {
            names[i] = r;
            r->of.pred.name_off = *at;
            *at += len;
        }
        r->of.pred.name_off = names[i]->of.pred.name_off;
        *at += r->of.pred.value_len;
    }
    return EF_T_OK;
}

/* Give every group that needs one its tail, from `at` on; returns the first byte behind them. */
static uint64_t plan_tails(ef_build *b, uint64_t at) {
    for (uint32_t i = 0; i < b->n_groups; i++) {
        ef_build_group *g = b->groups + i;
        const uint64_t size = ef_tail_size(g->len, (uint64_t)g->n_exact + g->n_prefix);
        g->tail = size != 0 ? (uint32_t)(at / 8) : 0;
        at += size;
    }
    return at;
}

static int plan_sections(ef_build *b) {
    b->log_end = b->used;
    const ef_build_record *end = ef_build_last(b);
    int verdict = plan_groups(b, end);
    if (verdict == EF_T_OK) verdict = plan_slots(b);
    if (verdict != EF_T_OK) return verdict;
    b->tails_off = sizeof(struct ef_blob) + sizeof(ef_slot) * (uint64_t)b->n_slots;
    b->cands_off = plan_tails(b, b->tails_off);
    b->preds_off = b->cands_off + (sizeof(ef_cand) + sizeof(ef_text)) * (uint64_t)b->n_regex;
    b->rules_off = b->preds_off + sizeof(ef_pred) * (uint64_t)b->n_preds;
    b->strings_off = b->rules_off + sizeof(ef_text) * (uint64_t)b->n_rules;
    b->payload_off = b->strings_off + b->key_len;
    verdict = plan_strings(b, end, &b->payload_off);
    if (verdict != EF_T_OK) return verdict;
    b->size = ef_align8(b->payload_off + b->payload_bytes);
    return b->size <= EF_MAX_BLOB ? EF_T_OK : EF_T_LIMIT;
}

int ef_build_plan(ef_build *b) {
    if (b->failed) return b->failed;
    if (b->planned) return EF_T_OK;
    if (b->preds_due != 0) return EF_T_ORDER;
    b->failed = plan_sections(b);
    b->used = b->log_end; /* the groups behind it stay valid: nothing is appended after a plan */
    b->planned = b->failed == EF_T_OK;
    return b->failed;
}
