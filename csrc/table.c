/* table.c - read access to a checked blob. See table.h. */
#include "table.h"

#include "internal/path_hash.h"
#include "map.h"
#include "table_layout.h"

uint32_t ef_blob_rules(const ef_blob *blob) { return blob->n_rules; }
uint32_t ef_blob_entries(const ef_blob *blob) { return blob->n_cands; }
uint32_t ef_blob_fragments(const ef_blob *blob) { return blob->n_fragments; }
uint32_t ef_blob_fragment_index(const ef_blob *blob) { return blob->fragment_index; }

const uint8_t *ef_blob_key(const ef_blob *blob, size_t *len) {
    *len = blob->key_len;
    return ef_at(blob, blob->key_off);
}

const uint8_t *ef_blob_rule(const ef_blob *blob, uint32_t rule, size_t *len) {
    const ef_text *texts = (const ef_text *)(const void *)ef_at(blob, blob->rules_off);
    *len = texts[rule].len;
    return ef_at(blob, texts[rule].off);
}

const uint8_t *ef_blob_regex(const ef_blob *blob, uint32_t candidate, size_t *len) {
    const ef_text *texts = ef_regex_texts(blob);
    *len = texts[candidate].len;
    return ef_at(blob, texts[candidate].off);
}

void ef_blob_depths(const ef_blob *blob, uint64_t *prefix_depths, uint64_t *exact_depths, uint32_t *max_exact_len) {
    *prefix_depths = blob->prefix_depths;
    *exact_depths = blob->exact_depths;
    *max_exact_len = blob->max_exact_len;
}

uint64_t ef_path_hash(const uint8_t *path, size_t len) { return ef_path_walk_run(path, len, 0, 1, NULL, NULL).hash; }

uint64_t ef_table_checksum(const ef_blob *blob) {
    const size_t before = offsetof(ef_blob, checksum), after = before + sizeof blob->checksum;
    const uint64_t head = ef_hash64(EF_TABLE_VERSION, ef_at(blob, 0), before, 0);
    return ef_hash64(head, ef_at(blob, after), blob->size - after, 0);
}
