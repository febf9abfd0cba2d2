/* ticket.c - see ticket.h. Words of a bank are stored and loaded atomically, so that a copy which is made during a write is
 * a copy that is thrown away, and nothing worse. */
#include "ticket.h"

#include <string.h>

#define LAYOUT  ((uint32_t)(EF_TICKET_SECRETS << 16 | sizeof(ef_ticket_secret)))
#define LABEL   "edgefast ticket 1"
#define LABELED (sizeof LABEL - 1 + EF_TICKET_RULE)

typedef struct bank {
    uint64_t count;
    ef_ticket_secret secrets[EF_TICKET_SECRETS];
} bank;

struct ef_ticket_ring {
    uint32_t magic, layout;
    uint64_t generation;
    uint64_t reserved_[6]; /* generation, which all look at, has a cache line that no bank is in */
    bank banks[2];
};

_Static_assert(sizeof(ef_ticket_secret) == 56, "the layout is a promise to the next process");
_Static_assert(sizeof(bank) % 8 == 0 && offsetof(ef_ticket_ring, banks) == 64, "banks are copied by words");
_Static_assert(sizeof(ef_ticket_key) == EF_TICKET_NAME + 2 * EF_TICKET_KEY, "derived as one run of bytes");

static void store_words(void *to, const void *from, size_t len) {
    uint64_t *out = to;
    for (size_t i = 0; i < len / 8; i++) {
        uint64_t word = 0;
        if (from != NULL) memcpy(&word, (const uint8_t *)from + 8 * i, 8);
        __atomic_store_n(out + i, word, __ATOMIC_RELAXED);
    }
}

static void load_words(void *to, const void *from, size_t len) {
    const uint64_t *in = from;
    for (size_t i = 0; i < len / 8; i++) {
        const uint64_t word = __atomic_load_n(in + i, __ATOMIC_RELAXED);
        memcpy((uint8_t *)to + 8 * i, &word, 8);
    }
}

void ef_ticket_wipe(void *mem, size_t len) {
    memset(mem, 0, len);
    __asm__ __volatile__("" : : "r"(mem) : "memory");
}

size_t ef_ticket_size(void) { return sizeof(ef_ticket_ring); }

int ef_ticket_init(void *mem, size_t len) {
    ef_ticket_ring *ring = mem;
    if (len < sizeof *ring) return -1;
    ring->magic = EF_TICKET_MAGIC;
    ring->layout = LAYOUT;
    return 0;
}

int ef_ticket_check(const void *mem, size_t len) {
    const ef_ticket_ring *ring = mem;
    return len >= sizeof *ring && ring->magic == EF_TICKET_MAGIC && ring->layout == LAYOUT ? 0 : -1;
}

uint64_t ef_ticket_generation(const ef_ticket_ring *ring) {
    return __atomic_load_n(&ring->generation, __ATOMIC_ACQUIRE);
}

/* Copy the bank in force; the generation that it belongs to, or 0 when there is none, or none that stands still. */
static uint64_t load_bank(const ef_ticket_ring *ring, bank *out) {
    for (int i = 0; i < EF_TICKET_TRIES; i++) {
        const uint64_t generation = ef_ticket_generation(ring);
        if (generation == 0) return 0;
        load_words(out, &ring->banks[generation & 1], sizeof *out);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&ring->generation, __ATOMIC_RELAXED) == generation) {
            if (out->count > EF_TICKET_SECRETS) out->count = 0; /* not written by ef_ticket_write */
            return generation;
        }
    }
    return 0;
}

int ef_ticket_read(const ef_ticket_ring *ring, ef_ticket_secret out[EF_TICKET_SECRETS]) {
    bank copy;
    int count = -1;
    if (load_bank(ring, &copy) != 0) {
        count = (int)copy.count;
        memcpy(out, copy.secrets, copy.count * sizeof *out);
    } else if (ef_ticket_generation(ring) == 0) {
        count = 0;
    }
    ef_ticket_wipe(&copy, sizeof copy);
    return count;
}

int ef_ticket_write(ef_ticket_ring *ring, const ef_ticket_secret *secrets, uint32_t count) {
    if (count > EF_TICKET_SECRETS) return -1;
    for (uint32_t i = 0; i < count; i++)
        if (secrets[i].begins > secrets[i].ends || secrets[i].ends > secrets[i].forgotten) return -1;
    const uint64_t next = ring->generation + 1;
    bank *fresh = &ring->banks[next & 1], *old = &ring->banks[(next & 1) ^ 1];
    store_words(fresh->secrets, NULL, sizeof fresh->secrets);
    if (count > 0) store_words(fresh->secrets, secrets, count * sizeof *secrets);
    __atomic_store_n(&fresh->count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->generation, next, __ATOMIC_RELEASE);
    /* Whoever sees a zero of what follows sees the generation, too, and throws its copy away. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    store_words(old, NULL, sizeof *old);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return 0;
}

/* HKDF-Expand of RFC 5869 to the 80 bytes of a key: three blocks, the last one cut. 0, or -1: no HMAC. */
static int derive(const ef_ticket_rule *rule, const uint8_t *secret, ef_ticket_key *out) {
    enum { BLOCK = 32 };
    uint8_t text[BLOCK + LABELED + 1], block[BLOCK], *to = (uint8_t *)out;
    memcpy(text + BLOCK, LABEL, sizeof LABEL - 1);
    memcpy(text + BLOCK + sizeof LABEL - 1, rule->digest, EF_TICKET_RULE);
    size_t left = sizeof *out;
    int result = 0;
    for (uint8_t number = 1; left > 0 && result == 0; number++) {
        const size_t skip = number == 1 ? BLOCK : 0, part = left < BLOCK ? left : BLOCK;
        text[BLOCK + LABELED] = number;
        result = rule->hmac(secret, text + skip, sizeof text - skip, block);
        if (result == 0) memcpy(to, block, part);
        memcpy(text, block, BLOCK);
        to += part;
        left -= part;
    }
    ef_ticket_wipe(text, sizeof text);
    ef_ticket_wipe(block, sizeof block);
    return result == 0 ? 0 : -1;
}

void ef_ticket_rule_init(ef_ticket_rule *rule, const uint8_t digest[EF_TICKET_RULE], ef_ticket_hmac hmac) {
    memset(rule, 0, sizeof *rule);
    memcpy(rule->digest, digest, EF_TICKET_RULE);
    rule->hmac = hmac;
}

void ef_ticket_rule_wipe(ef_ticket_rule *rule) { ef_ticket_wipe(rule, sizeof *rule); }

/* Have the ring's keys in the rule. Without any when they cannot be had: full handshakes. */
static void refresh(const ef_ticket_ring *ring, ef_ticket_rule *rule) {
    if (rule->generation == ef_ticket_generation(ring)) return;
    bank copy;
    const uint64_t generation = load_bank(ring, &copy);
    ef_ticket_wipe(rule->keys, sizeof rule->keys);
    rule->count = 0;
    rule->generation = 0;
    if (generation != 0) {
        int made = 0;
        for (uint32_t i = 0; i < copy.count && made == 0; i++) {
            ef_ticket_derived *one = &rule->keys[i];
            made = derive(rule, copy.secrets[i].secret, &one->key);
            one->begins = copy.secrets[i].begins;
            one->ends = copy.secrets[i].ends;
            one->forgotten = copy.secrets[i].forgotten;
        }
        if (made == 0) {
            rule->count = (uint32_t)copy.count;
            rule->generation = generation;
        } else {
            ef_ticket_wipe(rule->keys, sizeof rule->keys);
        }
    }
    ef_ticket_wipe(&copy, sizeof copy);
}

/* The one that encrypts now, or NULL. */
static const ef_ticket_derived *find_current(const ef_ticket_rule *rule, uint64_t now) {
    const ef_ticket_derived *found = NULL;
    for (uint32_t i = 0; i < rule->count; i++) {
        const ef_ticket_derived *one = &rule->keys[i];
        if (one->begins <= now && now < one->ends && (found == NULL || one->begins > found->begins)) found = one;
    }
    return found;
}

int ef_ticket_encrypt_key(const ef_ticket_ring *ring, ef_ticket_rule *rule, uint64_t now, ef_ticket_key *out) {
    refresh(ring, rule);
    const ef_ticket_derived *current = find_current(rule, now);
    if (current == NULL) return 0;
    *out = current->key;
    return 1;
}

int ef_ticket_decrypt_key(const ef_ticket_ring *ring, ef_ticket_rule *rule, const uint8_t name[EF_TICKET_NAME],
                          uint64_t now, ef_ticket_key *out) {
    refresh(ring, rule);
    for (uint32_t i = 0; i < rule->count; i++) {
        const ef_ticket_derived *one = &rule->keys[i];
        if (now >= one->forgotten || memcmp(one->key.name, name, EF_TICKET_NAME) != 0) continue;
        const ef_ticket_derived *current = find_current(rule, now);
        *out = one->key;
        return current != NULL && one->begins < current->begins ? EF_TICKET_RENEW : EF_TICKET_USE;
    }
    return EF_TICKET_UNKNOWN;
}
