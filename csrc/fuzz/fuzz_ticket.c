/* fuzz_ticket.c - any bytes as the ring of a process before, and any as the name of a ticket: at most a key that the ring
 * has, never a read outside of either. */
#include "../ticket.h"
#include "require.h"

static int mix(const uint8_t *key, const uint8_t *data, size_t len, uint8_t *out) {
    for (size_t i = 0; i < 32; i++)
        out[i] = (uint8_t)(key[i] + data[i % len] + data[len - 1]);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const size_t room = ef_ticket_size();
    uint8_t *ring = exact_copy(data, room < size ? room : size), *name = NULL;
    if (size < room + EF_TICKET_NAME + 8 || ef_ticket_check(ring, room) != 0) {
        REQUIRE(size >= room || ef_ticket_check(ring, size) == -1);
        free(ring);
        return 0;
    }
    name = exact_copy(data + room, EF_TICKET_NAME);
    uint64_t now;
    memcpy(&now, data + room + EF_TICKET_NAME, 8);
    ef_ticket_secret secrets[EF_TICKET_SECRETS];
    const int count = ef_ticket_read((ef_ticket_ring *)ring, secrets);
    REQUIRE(count >= 0 && count <= (int)EF_TICKET_SECRETS);
    static const uint8_t digest[EF_TICKET_RULE] = {3};
    ef_ticket_rule rule;
    ef_ticket_rule_init(&rule, digest, mix);
    ef_ticket_key key, found;
    const int known = ef_ticket_decrypt_key((ef_ticket_ring *)ring, &rule, name, now, &key);
    REQUIRE(known == EF_TICKET_UNKNOWN || memcmp(key.name, name, EF_TICKET_NAME) == 0);
    if (ef_ticket_encrypt_key((ef_ticket_ring *)ring, &rule, now, &key) == 1) {
        REQUIRE(count > 0);
        const int own = ef_ticket_decrypt_key((ef_ticket_ring *)ring, &rule, key.name, now, &found);
        int ordered = 1; /* ef_ticket_write puts in nothing else */
        for (int i = 0; i < count; i++)
            ordered &= secrets[i].ends <= secrets[i].forgotten;
        REQUIRE(!ordered || own != EF_TICKET_UNKNOWN);
    }
    free(name);
    free(ring);
    return 0;
}
