/* lone.c - is a table one path, and is it the request's? See lone.h. */
#include "lone.h"

#include <string.h>

#include "table_layout.h"

int ef_lone_read(const ef_blob *root, ef_lone *lone) {
    memset(lone, 0, sizeof *lone);
    if (root->n_fragments > 1 || root->n_rules != 1 || root->n_cands != 1 || root->n_regex != 0) return 0;
    const ef_slot *slot = ef_slots(root), *end = slot + root->n_slots;
    while (slot < end && (slot->n_exact | slot->n_prefix) == 0)
        slot++;
    if (slot == end || slot->path_len > EF_LONE_PATH || (slot->only.n_headers | slot->only.n_query) != 0) return 0;
    lone->holds = 1;
    lone->kind = slot->n_exact != 0 ? EF_PATH_EXACT : EF_PATH_PREFIX;
    lone->method = slot->only.method;
    lone->len = (uint8_t)slot->path_len;
    memcpy(lone->path, slot->path, slot->path_len);
    return 1;
}

int ef_lone_match(const ef_lone *lone, const ef_blob *root, const ef_request *request, ef_hit *hit) {
    const uint8_t *path = request->path;
    const size_t len = lone->len;
    if (request->path_len == 0 || path[0] != '/' || (lone->method != 0 && lone->method != request->method)) return 0;
    if (request->path_len < len || memcmp(path, lone->path, len) != 0) return 0;
    if (request->path_len > len && (lone->kind == EF_PATH_EXACT || path[len] != '/')) return 0;
    *hit = (ef_hit){.blob = root, .prefix_len = lone->len, .kind = lone->kind};
    return 1;
}
