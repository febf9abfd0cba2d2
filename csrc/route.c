/* route.c - the iterator over candidates. See route.h; predicates are in route_pred.c.
 *
 * Stages: EXACT and FULL_PREFIX share one probe (the whole path), REGEX is the root's run, BOUNDARIES are the prefixes from
 * the longest to "/". Each stage puts one run of candidates in hand; ef_route_next walks it.
 */
#include "route.h"

#include "internal/path_hash.h"
#include "internal/route_pred.h"
#include "table_layout.h"

enum stage { EXACT, REGEX, FULL_PREFIX, BOUNDARIES };

/* The slot of a path, or NULL. Ends after max_probe slots whatever the table looks like. */
static inline const ef_slot *find_slot(const ef_blob *blob, uint64_t hash, const uint8_t *path, size_t len) {
    const ef_slot *slots = ef_slots(blob);
    const uint32_t mask = blob->n_slots - 1;
    uint32_t at = (uint32_t)((hash * blob->multiplier) >> blob->shift);
    for (uint32_t left = blob->max_probe; left != 0; left--) {
        const ef_slot *slot = slots + at;
        if ((slot->n_exact | slot->n_prefix) == 0) return NULL;
        if (slot->hash == hash && slot->path_len == len && ef_bytes_equal(ef_slot_path(blob, slot), path, len))
            return slot;
        at = (at + 1) & mask;
    }
    return NULL;
}

/* The blob that holds paths of this hash, or NULL. */
static inline const ef_blob *blob_of(const ef_vhost *vhost, uint64_t hash) {
    if (vhost->n_fragments <= 1) return vhost->root;
    return vhost->fragments[(uint32_t)(hash >> 32) & (vhost->n_fragments - 1)];
}

static inline void take_run(ef_route *it, const ef_blob *blob, const ef_cand *at, uint32_t n, unsigned kind,
                            uint32_t prefix) {
    it->run_blob = blob;
    it->run_at = at;
    it->run_end = n != 0 ? at + n : at;
    it->run_kind = (uint8_t)kind;
    it->run_prefix = prefix;
}

void ef_route_begin(ef_route *it, const ef_vhost *vhost, const ef_request *request) {
    const ef_blob *root = vhost->root;
    const int absolute = request->path_len != 0 && request->path[0] == '/';
    const uint64_t depths = absolute ? root->prefix_depths : 0;
    const int exact = absolute && request->path_len <= root->max_exact_len;
    it->vhost = vhost;
    it->request = request;
    it->stage = EXACT;
    it->header_name = NULL;
    it->query_name = NULL;
    it->full = NULL;
    const ef_path_walk walk = ef_path_walk_run(request->path, request->path_len, depths, exact, it->hashes, it->ends);
    it->n_boundaries = (uint16_t)walk.n;
    take_run(it, NULL, NULL, 0, EF_PATH_EXACT, (uint32_t)request->path_len);
    if (!walk.whole) return;
    const uint32_t bit = walk.depth <= EF_DEEPEST ? walk.depth : EF_DEEPEST;
    const uint64_t exact_bit = exact ? root->exact_depths >> bit : 0;
    const uint64_t prefix_bit = walk.depth <= EF_DEEPEST ? depths >> bit : 0;
    if (((exact_bit | prefix_bit) & 1) == 0) return;
    const ef_blob *blob = blob_of(vhost, walk.hash);
    if (blob == NULL) return;
    it->full = find_slot(blob, walk.hash, request->path, request->path_len);
    if (it->full == NULL) return;
    it->full_blob = blob;
    take_run(it, blob, ef_slot_cands(blob, it->full), it->full->n_exact, EF_PATH_EXACT, (uint32_t)request->path_len);
}

/* Put the next run in hand; 0 when there is none left. */
static int next_run(ef_route *it) {
    const ef_request *request = it->request;
    if (it->stage == EXACT) {
        it->stage = REGEX;
        const ef_blob *root = it->vhost->root;
        if (root->n_regex != 0) {
            take_run(it, root, ef_regex_cands(root), root->n_regex, EF_PATH_REGEX, (uint32_t)request->path_len);
            return 1;
        }
    }
    if (it->stage == REGEX) {
        it->stage = FULL_PREFIX;
        if (it->full != NULL && it->full->n_prefix != 0) {
            take_run(it, it->full_blob, ef_slot_cands(it->full_blob, it->full) + it->full->n_exact, it->full->n_prefix,
                     EF_PATH_PREFIX, (uint32_t)request->path_len);
            return 1;
        }
    }
    it->stage = BOUNDARIES;
    while (it->n_boundaries != 0) {
        const unsigned i = --it->n_boundaries;
        const ef_blob *blob = blob_of(it->vhost, it->hashes[i]);
        if (blob == NULL) continue;
        const ef_slot *slot = find_slot(blob, it->hashes[i], request->path, it->ends[i]);
        if (slot == NULL || slot->n_prefix == 0) continue;
        take_run(it, blob, ef_slot_cands(blob, slot) + slot->n_exact, slot->n_prefix, EF_PATH_PREFIX, it->ends[i]);
        return 1;
    }
    return 0;
}

int ef_route_next(ef_route *it, ef_hit *hit) {
    do {
        const ef_blob *blob = it->run_blob;
        while (it->run_at < it->run_end) {
            const ef_cand *cand = it->run_at++;
            if (cand->method != 0 && cand->method != it->request->method) continue;
            if ((cand->n_headers | cand->n_query) != 0 && !ef_preds_hold(it, blob, cand)) continue;
            *hit = (ef_hit){.blob = blob,
                            .rule = cand->rule,
                            .candidate = cand->entry,
                            .where = (uint32_t)((const uint8_t *)cand - (const uint8_t *)blob),
                            .prefix_len = it->run_prefix,
                            .kind = it->run_kind,
                            .regex_path = it->run_kind == EF_PATH_REGEX,
                            .regex_preds = cand->n_regex};
            return 1;
        }
    } while (next_run(it));
    return 0;
}
