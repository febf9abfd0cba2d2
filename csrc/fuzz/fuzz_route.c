/* fuzz_route.c - any bytes as a table and a request: the matcher offers what a linear scan over the entries offers, in order.
 *
 * Input: one byte log2 of the number of fragments; lines of entries, an empty line, a request line, header lines.
 *   entry:    KIND METHOD PATH [h:NAME=VALUE] [h:NAME~PATTERN] [q:NAME=VALUE] [q:NAME~PATTERN]     KIND is e, p or r
 *   request:  METHOD PATH [QUERY], then NAME: VALUE lines
 * What the builder refuses is left out of both sides.
 */
#include "../head.h"
#include "../single_path.h"
#include "../route.h"
#include "../path.h"
#include "require.h"

enum { ENTRIES = 24, PREDS = 4, SPANS = 8, FRAGMENTS = 8, WORK = 1 << 18 };

typedef struct text {
    const uint8_t *at;
    size_t len;
} text;

typedef struct pred {
    text name, value;
    int is_query, is_regex;
} pred;

typedef struct entry {
    int kind;
    unsigned method;
    text path;
    pred preds[PREDS]; /* headers first */
    uint32_t n_headers, n_query;
    int in_table;
} entry;

static int same(text a, text b) { return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0); }

/* The part of *rest up to `stop`, which is dropped. */
static text cut(text *rest, uint8_t stop) {
    const uint8_t *end = rest->len ? memchr(rest->at, stop, rest->len) : NULL;
    const text part = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
    rest->at += part.len + (end != NULL);
    rest->len -= part.len + (end != NULL);
    return part;
}

static void read_entry(entry *e, text line) {
    const text kind = cut(&line, ' '), method = cut(&line, ' ');
    *e = (entry){.kind = kind.len && kind.at[0] == 'e'   ? EF_PATH_EXACT
                         : kind.len && kind.at[0] == 'r' ? EF_PATH_REGEX
                                                         : EF_PATH_PREFIX,
                 .method = ef_method_lookup(method.at, method.len),
                 .path = cut(&line, ' ')};
    for (int pass = 0; pass < 2; pass++) {
        text rest = line;
        while (rest.len && e->n_headers + e->n_query < PREDS) {
            text word = cut(&rest, ' ');
            if (word.len < 2 || (word.at[0] == 'q') != pass) continue;
            word.at += 2;
            word.len -= 2;
            size_t n = 0;
            while (n < word.len && word.at[n] != '=' && word.at[n] != '~')
                n++;
            pred *p = e->preds + e->n_headers + e->n_query;
            *p = (pred){{word.at, n}, {word.at + n, 0}, pass, n < word.len && word.at[n] == '~'};
            if (n < word.len) p->value = (text){word.at + n + 1, word.len - n - 1};
            if (pass)
                e->n_query++;
            else
                e->n_headers++;
        }
    }
}

/* --- the linear scan ---------------------------------------------------------------------------------------------- */

static uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c; }

static int header_value(const ef_request *r, text name, uint8_t *out, size_t *len) {
    int found = 0;
    *len = 0;
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const ef_span *s = r->spans + i;
        size_t k = 0;
        if (s->name_len != name.len) continue;
        while (k < name.len && lower(r->base[s->name_off + k]) == name.at[k])
            k++;
        if (k < name.len) continue;
        if (found) out[(*len)++] = ',';
        for (uint32_t j = 0; j < s->val_len; j++)
            out[(*len)++] = r->base[s->val_off + j];
        found = 1;
    }
    return found;
}

static int query_value(const ef_request *r, text name, uint8_t *out, size_t *len) {
    text rest = {r->query, r->query_len};
    while (rest.len) {
        text value = cut(&rest, '&');
        if (value.len == 0) continue;
        const text key = cut(&value, '=');
        const long n = ef_query_decode(key.at, key.len, out, 65536);
        if (!same((text){out, (size_t)n}, name)) continue;
        *len = (size_t)ef_query_decode(value.at, value.len, out, 65536);
        return 1;
    }
    return 0;
}

/* A piece without the blanks around it. */
static text bare(text t) {
    while (t.len && (t.at[0] == ' ' || t.at[0] == '\t'))
        t = (text){t.at + 1, t.len - 1};
    while (t.len && (t.at[t.len - 1] == ' ' || t.at[t.len - 1] == '\t'))
        t.len--;
    return t;
}

/* Some cookie of that name, with that value if there is one to have. */
static int cookie_holds(const ef_request *r, text name, const text *value) {
    int found = 0;
    uint32_t offered = 0, seen = 0;
    uint64_t at = 0;
    const uint8_t *given;
    size_t len;
    while (ef_request_cookie(r, name.at, name.len, &at, &given, &len))
        offered++;
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const ef_span *s = r->spans + i;
        if (s->name_len != 6) continue;
        size_t k = 0;
        while (k < 6 && lower(r->base[s->name_off + k]) == "cookie"[k])
            k++;
        text rest = {r->base + s->val_off, s->val_len};
        while (k == 6 && rest.len) {
            const text piece = cut(&rest, ';');
            text after = piece;
            const text key = cut(&after, '=');
            if (key.len == piece.len || !same(bare(key), name)) continue;
            seen++;
            found |= value == NULL || same(bare(after), *value);
        }
    }
    REQUIRE(offered == seen);
    return found;
}

static int preds_hold(const entry *e, const ef_request *r) {
    static uint8_t value[1 << 20];
    for (uint32_t i = 0; i < e->n_headers + e->n_query; i++) {
        const pred *p = e->preds + i;
        size_t len = 0;
        if (!p->is_query && p->name.len > 7 && memcmp(p->name.at, "cookie:", 7) == 0) {
            if (!cookie_holds(r, (text){p->name.at + 7, p->name.len - 7}, p->is_regex ? NULL : &p->value)) return 0;
            continue;
        }
        if (!(p->is_query ? query_value : header_value)(r, p->name, value, &len)) return 0;
        if (!p->is_regex && !same((text){value, len}, p->value)) return 0;
    }
    return e->method == 0 || e->method == r->method;
}

static int path_holds(const entry *e, const ef_request *r) {
    const text path = {r->path, r->path_len};
    if (e->kind == EF_PATH_REGEX) return 1;
    if (e->kind == EF_PATH_EXACT || e->path.len == path.len) return same(e->path, path) && path.len != 0;
    if (path.len < e->path.len || path.at[0] != '/') return 0;
    return path.at[e->path.len] == '/' && same(e->path, (text){path.at, e->path.len});
}

/* Exact, then regex, then longer prefixes first; entries of one path as they were given. */
static int before(const entry *a, const entry *b) {
    static const int rank[3] = {[EF_PATH_EXACT] = 0, [EF_PATH_REGEX] = 1, [EF_PATH_PREFIX] = 2};
    if (a->kind != b->kind) return rank[a->kind] < rank[b->kind];
    if (a->kind == EF_PATH_PREFIX && a->path.len != b->path.len) return a->path.len > b->path.len;
    return a < b;
}

static uint32_t scan(const entry *entries, uint32_t n, const ef_request *r, uint32_t *order) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!entries[i].in_table || !path_holds(entries + i, r) || !preds_hold(entries + i, r)) continue;
        uint32_t at = count++;
        for (; at > 0 && before(entries + i, entries + order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return count;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static uint8_t *work;
static ef_build *build;

static void begin(uint32_t fragments, uint32_t index, int is_root) {
    REQUIRE(ef_build_begin(build, work, WORK, (const uint8_t *)"k", 1, fragments, index, is_root) == EF_T_OK);
}

static ef_blob *end(void) {
    const long size = ef_build_end(build, NULL, 0);
    REQUIRE(size > 0);
    uint8_t *out = malloc((size_t)size);
    REQUIRE(out != NULL && ef_build_end(build, out, (size_t)size) == size);
    REQUIRE(ef_table_check(out, (size_t)size) == EF_T_OK);
    return (ef_blob *)(void *)out;
}

/* The rule's payload is the entry's number. */
static void add(entry *e, uint32_t number) {
    const uint8_t payload = (uint8_t)number;
    const int rule = ef_build_rule(build, &payload, 1);
    REQUIRE(rule >= 0);
    const int rc =
        ef_build_entry(build, (uint32_t)rule, e->kind, e->path.at, e->path.len, e->method, e->n_headers, e->n_query);
    REQUIRE(rc >= 0 || rc == EF_T_PATH);
    e->in_table = rc >= 0;
    for (uint32_t i = 0; rc >= 0 && i < e->n_headers + e->n_query; i++) {
        const pred *p = e->preds + i;
        REQUIRE(ef_build_pred(build, p->name.at, p->name.len, p->value.at, p->value.len, p->is_regex) == EF_T_OK);
    }
}

static int belongs(const entry *e, uint32_t fragment, uint32_t fragments) {
    return (ef_path_hash(e->path.at, e->path.len) >> 32) % fragments == fragment;
}

static ef_blob *make(entry *entries, uint32_t n, uint32_t fragments, ef_blob **parts) {
    uint64_t prefix = 0, exact = 0, p, x;
    uint32_t longest = 0, l;
    for (uint32_t f = 0; fragments > 1 && f < fragments; f++) {
        begin(fragments, f, 0);
        for (uint32_t i = 0; i < n; i++)
            if (entries[i].kind != EF_PATH_REGEX && belongs(entries + i, f, fragments)) add(entries + i, i);
        parts[f] = end();
        ef_blob_depths(parts[f], &p, &x, &l);
        prefix |= p;
        exact |= x;
        if (l > longest) longest = l;
    }
    begin(fragments, 0, 1);
    REQUIRE(ef_build_depths(build, prefix, exact, longest) == EF_T_OK);
    for (uint32_t i = 0; i < n; i++)
        if (fragments == 1 || entries[i].kind == EF_PATH_REGEX) add(entries + i, i);
    return end();
}

/* A host of one path says the same without its table. */
static void compare_lone(const ef_blob *root, const ef_vhost *vhost, const ef_request *r) {
    ef_single_path sole;
    ef_route it;
    ef_hit hit, alone;
    if (!ef_single_path_read(root, &sole)) return;
    ef_route_begin(&it, vhost, r);
    const int found = ef_route_next(&it, &hit);
    REQUIRE(ef_single_path_match(&sole, root, r, &alone) == found);
    hit.where = 0;
    if (found) REQUIRE(memcmp(&hit, &alone, sizeof hit) == 0);
}

static void compare(entry *entries, uint32_t n, uint32_t fragments, const ef_request *r) {
    ef_blob *parts[FRAGMENTS] = {0};
    ef_blob *root = make(entries, n, fragments, parts);
    const ef_vhost vhost = {root, fragments > 1 ? (const ef_blob *const *)parts : NULL, fragments, 0};
    uint32_t order[ENTRIES];
    const uint32_t count = scan(entries, n, r, order);
    ef_route it;
    ef_hit hit;
    size_t len;
    ef_route_begin(&it, &vhost, r);
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE(ef_route_next(&it, &hit) == 1);
        REQUIRE(ef_blob_rule(hit.blob, hit.rule, &len)[0] == order[i]);
        REQUIRE(hit.kind == entries[order[i]].kind);
        if (hit.kind == EF_PATH_PREFIX) REQUIRE(hit.prefix_len == entries[order[i]].path.len);
    }
    REQUIRE(ef_route_next(&it, &hit) == 0);
    compare_lone(root, &vhost, r);
    free(root);
    for (uint32_t f = 0; f < FRAGMENTS; f++)
        free(parts[f]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static entry entries[ENTRIES];
    ef_span spans[SPANS];
    if (size == 0 || size > 8192) return 0;
    if (work == NULL) work = malloc(WORK);
    if (build == NULL) build = malloc(ef_build_sizeof());
    REQUIRE(work != NULL && build != NULL);
    uint8_t *copy = exact_copy(data + 1, size - 1);
    text rest = {copy, size - 1}, line;
    uint32_t n = 0;
    while (rest.len && (line = cut(&rest, '\n')).len)
        if (n < ENTRIES) read_entry(entries + n++, line);
    line = cut(&rest, '\n');
    const text method = cut(&line, ' '), path = cut(&line, ' '), query = line;
    uint32_t n_spans = 0;
    while (rest.len && n_spans < SPANS) {
        text value = cut(&rest, '\n');
        const text name = cut(&value, ':');
        spans[n_spans++] = (ef_span){.name_off = (uint32_t)(name.at - copy),
                                     .name_len = (uint16_t)name.len,
                                     .name_hash = ef_name_hash(name.at, name.len),
                                     .val_off = (uint32_t)(value.at - copy),
                                     .val_len = (uint32_t)value.len};
    }
    uint8_t *exact_path = exact_copy(path.at, path.len);
    const ef_request r = {exact_path, path.len, query.at, query.len, ef_method_lookup(method.at, method.len),
                          n_spans,    copy,     spans};
    compare(entries, n, 1, &r);
    compare(entries, n, 1u << data[0] % 4, &r);
    free(exact_path);
    free(copy);
    return 0;
}
