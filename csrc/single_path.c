/* single_path.c - is a table one path, and is it the request's? See single_path.h. */
#include "single_path.h"

#include <string.h>

#include "table_layout.h"

int ef_single_path_read(const ef_blob *root, ef_single_path *sole) {
    memset(sole, 0, sizeof *sole);
    if (root->n_fragments > 1 || root->n_rules != 1 || root->n_cands != 1 || root->n_regex != 0) return 0;
    const ef_slot *slot = ef_slots(root), *end = slot + root->n_slots;
    while (slot < end && (slot->n_exact | slot->n_prefix) == 0)
        slot++;
    if (slot == end || slot->path_len > EF_SINGLE_PATH || (slot->only.n_headers | slot->only.n_query) != 0) return 0;
    sole->holds = 1;
    sole->kind = slot->n_exact != 0 ? EF_PATH_EXACT : EF_PATH_PREFIX;
    sole->method = slot->only.method;
    sole->len = (uint8_t)slot->path_len;
    memcpy(sole->path, slot->path, slot->path_len);
    return 1;
}

int ef_single_path_match(const ef_single_path *sole, const ef_blob *root, const ef_request *request, ef_hit *hit) {
    const uint8_t *path = request->path;
    const size_t len = sole->len;
    if (request->path_len == 0 || path[0] != '/' || (sole->method != 0 && sole->method != request->method)) return 0;
    if (request->path_len < len || memcmp(path, sole->path, len) != 0) return 0;
    if (request->path_len > len && (sole->kind == EF_PATH_EXACT || path[len] != '/')) return 0;
    *hit = (ef_hit){.blob = root, .prefix_len = sole->len, .kind = sole->kind};
    return 1;
}
