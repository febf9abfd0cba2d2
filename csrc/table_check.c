/* table_check.c - the gate: after ef_table_check says 0, readers trust every offset and count of a blob.
 *
 * Checked: header and checksum; every section and string lies inside; every number that refers to something refers to
 * something that is there; slots are found by their own hash within max_probe and the depth sets know them. Nothing is
 * read through an offset before that offset has been checked.
 */
#include <string.h>

#include "head.h"
#include "internal/path_hash.h"
#include "map.h"
#include "table_layout.h"

static int section_fits(const ef_blob *b, uint32_t off, uint64_t count, uint64_t each) {
    return (off & 7) == 0 && off >= sizeof *b && off <= b->size && count * each <= b->size - off;
}

static int string_fits(const ef_blob *b, uint32_t off, uint32_t len) { return off <= b->size && len <= b->size - off; }

static int check_header(const uint8_t *data, size_t len) {
    if (((uintptr_t)data & 7) != 0) return EF_T_BOUNDS;
    if (len < sizeof(ef_blob)) return EF_T_SHORT;
    const ef_blob *b = (const ef_blob *)(const void *)data;
    if (b->magic != EF_TABLE_MAGIC) return EF_T_MAGIC;
    if (b->version != EF_TABLE_VERSION) return EF_T_VERSION;
    if (b->size > len) return EF_T_SHORT;
    if (b->size != len || b->size % 8 != 0 || b->size > EF_MAX_BLOB) return EF_T_BOUNDS;
    if (b->checksum != ef_table_checksum(b)) return EF_T_CHECKSUM;
    if (!section_fits(b, b->slots_off, b->n_slots, sizeof(ef_slot))) return EF_T_BOUNDS;
    if (!section_fits(b, b->cands_off, b->n_regex, sizeof(ef_cand) + sizeof(ef_text))) return EF_T_BOUNDS;
    if (!section_fits(b, b->preds_off, b->n_preds, sizeof(ef_pred))) return EF_T_BOUNDS;
    if (!section_fits(b, b->rules_off, b->n_rules, sizeof(ef_text))) return EF_T_BOUNDS;
    if (!string_fits(b, b->key_off, b->key_len)) return EF_T_BOUNDS;
    if (b->n_regex > b->n_cands || b->n_rules > INT32_MAX || b->n_cands > INT32_MAX) return EF_T_BOUNDS;
    const uint32_t n = b->n_fragments;
    if (n == 0 || (n & (n - 1)) != 0 || n > EF_MAX_FRAGMENTS || b->fragment_index >= n) return EF_T_LIMIT;
    if (b->is_root > 1 || (b->is_root && b->fragment_index != 0) || (!b->is_root && n == 1)) return EF_T_BOUNDS;
    if (b->is_root && n > 1 && b->n_slots != 0) return EF_T_BOUNDS;
    return !b->is_root && b->n_regex != 0 ? EF_T_BOUNDS : EF_T_OK;
}

/* What the candidates of all runs add up to: both must come out at what the header says. */
typedef struct tally {
    uint64_t cands, preds;
} tally;

static int check_pred(const ef_blob *b, const ef_pred *p, int is_header) {
    if (!string_fits(b, p->name_off, p->name_len) || !string_fits(b, p->value_off, p->value_len)) return EF_T_BOUNDS;
    if (p->is_regex > 1) return EF_T_BOUNDS;
    if (p->is_cookie != (is_header && ef_names_cookie(ef_at(b, p->name_off), p->name_len))) return EF_T_BOUNDS;
    const uint32_t hash = is_header ? ef_name_hash(ef_at(b, p->name_off), p->name_len) : 0;
    return p->name_hash == hash ? EF_T_OK : EF_T_BOUNDS;
}

/* Candidates that are known to lie inside the blob. */
static int check_cands(const ef_blob *b, const ef_cand *cands, uint64_t count, tally *seen) {
    seen->cands += count;
    if (seen->cands > b->n_cands) return EF_T_BOUNDS;
    for (const ef_cand *c = cands; c < cands + count; c++) {
        const uint32_t n = (uint32_t)c->n_headers + c->n_query;
        if (c->rule >= b->n_rules || c->entry >= b->n_cands || c->method >= EF_M_COUNT) return EF_T_BOUNDS;
        if ((uint64_t)c->pred + n > b->n_preds || (seen->preds += n) > b->n_preds) return EF_T_BOUNDS;
        uint32_t regexes = 0;
        for (uint32_t i = 0; i < n; i++) {
            const ef_pred *p = ef_preds(b) + c->pred + i;
            const int verdict = check_pred(b, p, i < c->n_headers);
            if (verdict != EF_T_OK) return verdict;
            regexes += p->is_regex;
        }
        if (regexes != c->n_regex) return EF_T_BOUNDS;
    }
    return EF_T_OK;
}

static int check_regexes(const ef_blob *b, tally *seen) {
    for (uint32_t i = 0; i < b->n_regex; i++) {
        const ef_text *text = ef_regex_texts(b) + i;
        if (!string_fits(b, text->off, text->len)) return EF_T_BOUNDS;
        if (ef_regex_cands(b)[i].entry != i) return EF_T_BOUNDS; /* a hit's number finds its pattern */
    }
    return check_cands(b, ef_regex_cands(b), b->n_regex, seen);
}

static int check_slot(const ef_blob *b, uint32_t place, tally *seen) {
    const ef_slot *slots = ef_slots(b), *slot = slots + place;
    const uint64_t count = (uint64_t)slot->n_exact + slot->n_prefix, tail = (uint64_t)slot->tail * 8;
    const uint64_t tail_size = ef_tail_size(slot->path_len, count);
    if (tail_size == 0 ? tail != 0 : tail < sizeof *b || tail > b->size || tail_size > b->size - tail)
        return EF_T_BOUNDS;
    const ef_path_walk walk = ef_path_walk_run(ef_slot_path(b, slot), slot->path_len, 0, 1, NULL, NULL);
    if (walk.hash != slot->hash) return EF_T_BOUNDS;
    const uint32_t bit = walk.depth <= EF_DEEPEST ? walk.depth : EF_DEEPEST;
    if (slot->n_exact != 0 && ((b->exact_depths >> bit & 1) == 0 || slot->path_len > b->max_exact_len))
        return EF_T_BOUNDS;
    if (slot->n_prefix != 0 && ((b->prefix_depths >> bit & 1) == 0 || walk.depth > EF_DEEPEST)) return EF_T_BOUNDS;
    if (!b->is_root && ((uint32_t)(walk.hash >> 32) & (b->n_fragments - 1)) != b->fragment_index) return EF_T_BOUNDS;
    uint32_t at = (uint32_t)(walk.hash * b->multiplier >> b->shift);
    for (uint32_t probe = 1; at != place; probe++, at = (at + 1) & (b->n_slots - 1)) {
        if (probe >= b->max_probe) return EF_T_BOUNDS; /* a lookup would never reach it */
        if ((slots[at].n_exact | slots[at].n_prefix) == 0) return EF_T_BOUNDS;
    }
    return check_cands(b, ef_slot_cands(b, slot), count, seen);
}

static int check_slots(const ef_blob *b, tally *seen) {
    if (b->n_slots == 0) return b->max_probe == 0 && b->n_paths == 0 && b->shift == 63 ? EF_T_OK : EF_T_BOUNDS;
    if (b->n_slots < 2 || (b->n_slots & (b->n_slots - 1)) != 0) return EF_T_BOUNDS;
    if (b->shift != 64u - (uint32_t)__builtin_ctz(b->n_slots) || (b->multiplier & 1) == 0) return EF_T_BOUNDS;
    if (b->max_probe == 0 || b->max_probe > EF_MAX_PROBE) return EF_T_LIMIT;
    uint32_t used = 0;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        if ((ef_slots(b)[i].n_exact | ef_slots(b)[i].n_prefix) == 0) continue;
        used++;
        const int verdict = check_slot(b, i, seen);
        if (verdict != EF_T_OK) return verdict;
    }
    return used == b->n_paths && used <= b->n_slots / 2 ? EF_T_OK : EF_T_BOUNDS;
}

int ef_table_check(const uint8_t *data, size_t len) {
    int verdict = check_header(data, len);
    if (verdict != EF_T_OK) return verdict;
    const ef_blob *b = (const ef_blob *)(const void *)data;
    tally seen = {0, 0};
    verdict = check_regexes(b, &seen);
    if (verdict == EF_T_OK) verdict = check_slots(b, &seen);
    if (verdict != EF_T_OK) return verdict;
    if (seen.cands != b->n_cands || seen.preds != b->n_preds) return EF_T_BOUNDS;
    const ef_text *rules = (const ef_text *)(const void *)ef_at(b, b->rules_off);
    for (uint32_t i = 0; i < b->n_rules; i++) {
        if (!string_fits(b, rules[i].off, rules[i].len)) return EF_T_BOUNDS;
    }
    return EF_T_OK;
}
