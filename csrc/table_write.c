/* table_write.c - writes a planned blob: every section in one pass over the log. See table_layout.h for the bytes. */
#include "head.h"
#include "internal/build.h"

/* Where the next record of each section goes. */
typedef struct cursor {
    uint8_t *out;
    uint32_t rule, regex, other, pred;
    uint32_t string;
    uint32_t payload;
} cursor;

static uint32_t put_string(cursor *c, const uint8_t *bytes, uint32_t len) {
    const uint32_t off = c->string;
    ef_build_copy(c->out + off, bytes, len);
    c->string += len;
    return off;
}

static void write_header(const ef_build *b, uint8_t *out) {
    struct ef_blob *h = (struct ef_blob *)(void *)out;
    h->magic = EF_TABLE_MAGIC;
    h->version = EF_TABLE_VERSION;
    h->prefix_depths = b->prefix_depths;
    h->exact_depths = b->exact_depths;
    h->max_exact_len = b->max_exact_len;
    h->multiplier = b->n_slots != 0 ? b->multiplier : 1;
    h->shift = b->n_slots != 0 ? 64u - (uint32_t)__builtin_ctz(b->n_slots) : 63;
    h->max_probe = b->n_slots != 0 ? b->max_probe : 0;
    h->n_slots = b->n_slots;
    h->slots_off = (uint32_t)sizeof *h;
    h->tails_off = (uint32_t)b->tails_off;
    h->cands_off = (uint32_t)b->cands_off;
    h->preds_off = (uint32_t)b->preds_off;
    h->rules_off = (uint32_t)b->rules_off;
    h->strings_off = (uint32_t)b->strings_off;
    h->n_regex = b->n_regex;
    h->n_cands = b->n_entries;
    h->n_preds = b->n_preds;
    h->n_rules = b->n_rules;
    h->n_paths = b->n_groups;
    h->size = (uint32_t)b->size;
    h->key_off = (uint32_t)b->strings_off;
    h->key_len = b->key_len;
    h->n_fragments = b->n_fragments;
    h->fragment_index = b->fragment_index;
    h->is_root = b->is_root;
}

static ef_slot *slots_of(uint8_t *out) { return (ef_slot *)(void *)(out + sizeof(struct ef_blob)); }

/* Slots and paths; the candidates follow with the entries. */
static void write_slots(const ef_build *b, uint8_t *out) {
    for (uint32_t i = 0; i < b->n_groups; i++) {
        ef_build_group *g = b->groups + i;
        uint32_t at = (uint32_t)(g->hash * b->multiplier >> (64u - (uint32_t)__builtin_ctz(b->n_slots)));
        while ((slots_of(out)[at].n_exact | slots_of(out)[at].n_prefix) != 0)
            at = (at + 1) & (b->n_slots - 1);
        ef_slot *slot = slots_of(out) + at;
        slot->hash = g->hash;
        slot->path_len = (uint16_t)g->len;
        slot->n_exact = (uint16_t)g->n_exact;
        slot->n_prefix = (uint16_t)g->n_prefix;
        slot->tail = g->tail;
        ef_build_copy(g->len <= EF_SLOT_PATH ? slot->path : out + (size_t)g->tail * 8, g->path, g->len);
        g->slot = at;
        g->exact_written = g->prefix_written = 0;
    }
}

/* Where the next candidate of that kind of the path goes. */
static uint8_t *next_cand(ef_build_group *g, uint8_t *out, int kind) {
    if (g->n_exact + g->n_prefix == 1) return (uint8_t *)&slots_of(out)[g->slot].only;
    const uint32_t at = kind == EF_PATH_EXACT ? g->exact_written++ : g->n_exact + g->prefix_written++;
    return out + (size_t)g->tail * 8 + ef_tail_size(g->len, 0) + sizeof(ef_cand) * at;
}

static void write_entry(const ef_build *b, cursor *c, const ef_build_record *r) {
    ef_cand cand = {.rule = r->of.entry.rule,
                    .pred = c->pred,
                    .method = (uint8_t)r->of.entry.method,
                    .n_headers = r->n_headers,
                    .n_query = r->n_query};
    uint32_t due = (uint32_t)r->n_headers + r->n_query;
    for (const ef_build_record *p = r; due != 0; due--) {
        p = (const ef_build_record *)(const void *)((const uint8_t *)p + p->size);
        cand.n_regex = (uint8_t)(cand.n_regex + p->of.pred.is_regex);
    }
    uint8_t *to = c->out;
    if (r->path_kind == EF_PATH_REGEX) {
        const ef_text text = {put_string(c, r->bytes, r->of.entry.len), r->of.entry.len};
        memcpy(to + b->cands_off + sizeof cand * b->n_regex + sizeof text * c->regex, &text, sizeof text);
        cand.entry = c->regex++;
        to += b->cands_off + sizeof cand * cand.entry;
    } else {
        cand.entry = b->n_regex + c->other++;
        to = next_cand(b->groups + r->of.entry.group, to, r->path_kind);
    }
    memcpy(to, &cand, sizeof cand);
}

static void write_pred(const ef_build *b, cursor *c, const ef_build_record *r) {
    const uint32_t name_len = r->of.pred.name_len;
    const uint32_t name_off = (uint32_t)r->of.pred.name_off;
    if (name_off == c->string) put_string(c, r->bytes, name_len); /* met for the first time: planned for exactly here */
    const ef_pred pred = {.name_hash = r->of.pred.is_header ? ef_name_hash(r->bytes, name_len) : 0,
                          .name_off = name_off,
                          .value_off = put_string(c, r->bytes + name_len, r->of.pred.value_len),
                          .value_len = r->of.pred.value_len,
                          .name_len = (uint16_t)name_len,
                          .is_regex = (uint8_t)r->of.pred.is_regex,
                          .is_cookie = (uint8_t)(r->of.pred.is_header && ef_names_cookie(r->bytes, name_len))};
    memcpy(c->out + b->preds_off + sizeof pred * c->pred++, &pred, sizeof pred);
}

static void write_rule(const ef_build *b, cursor *c, const ef_build_record *r) {
    const ef_text text = {c->payload, r->of.rule.len};
    ef_build_copy(c->out + c->payload, r->bytes, r->of.rule.len);
    c->payload += r->of.rule.len;
    memcpy(c->out + b->rules_off + sizeof text * c->rule++, &text, sizeof text);
}

long ef_build_end(ef_build *b, uint8_t *out, size_t out_cap) {
    const int verdict = ef_build_plan(b);
    if (verdict != EF_T_OK) return verdict;
    if (out == NULL) return (long)b->size;
    if (out_cap < b->size) return EF_T_NO_MEMORY;
    if (((uintptr_t)out & 7) != 0) return EF_T_BOUNDS;
    memset(out, 0, b->size);
    write_header(b, out);
    cursor c = {.out = out, .string = (uint32_t)b->strings_off, .payload = (uint32_t)b->payload_off};
    put_string(&c, b->key, b->key_len);
    write_slots(b, out);
    const ef_build_record *end = ef_build_last(b);
    for (ef_build_record *r = ef_build_first(b); r != end; r = ef_build_next(r)) {
        if (r->kind == EF_RECORD_RULE) write_rule(b, &c, r);
        if (r->kind == EF_RECORD_ENTRY) write_entry(b, &c, r);
        if (r->kind == EF_RECORD_PRED) write_pred(b, &c, r);
    }
    struct ef_blob *header = (struct ef_blob *)(void *)out;
    header->checksum = ef_table_checksum(header);
    return (long)b->size;
}
