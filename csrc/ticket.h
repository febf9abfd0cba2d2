/* ticket.h - keys of TLS session tickets in memory that all workers of a machine share: one writer, readers that never wait.
 *
 *   +--------+------------+--------------------------------+--------------------------------+
 *   | header | generation | bank 0: count, secrets[8]      | bank 1: count, secrets[8]      |
 *   +--------+------------+--------------------------------+--------------------------------+
 *     secret: 32 bytes | begins, ends, forgotten: milliseconds of CLOCK_BOOTTIME, which nobody can set
 *
 * The agent alone writes: the whole into the bank that nobody reads, then the generation, whose lowest bit names the bank in
 * force, then zeros over the other bank. A reader copies the bank in force and looks at the generation again. So an agent
 * that is killed at any instruction leaves the keys before or those after, and at most a retired secret that its successor's
 * ring does not have; no reader waits for anybody (after EF_TICKET_TRIES changes in a row there is no key for now).
 *
 * A secret encrypts from `begins` to `ends` (of several the one that began last) and decrypts until `forgotten`, also before
 * it begins: another replica, or another worker, may be ahead. Who chooses by time goes on rotating without its agent, from
 * current to next; when there is no next one any more, no tickets are made, and handshakes are full ones.
 *
 * No secret is ever used itself. A port's rule (lowest version, CAs of client certificates, whether they must verify, the port;
 * a digest of all these, proxy/tls/ticket_rule.py) goes into the derivation of what encrypts, authenticates and names a ticket:
 *
 *   name[16] | aes[32] | hmac[32]  =  HKDF-Expand(HMAC-SHA256, secret, "edgefast ticket 1" | rule[32], 80)      (RFC 5869 2.3)
 *
 * so a ticket of one rule has a name that another one does not know, and could not be decrypted or made there: resumption never
 * leads around client verification (CVE-2025-23419). What was derived is kept in the caller's `ef_ticket_rule`, one per port
 * rule and worker, until the generation is another one: a handshake costs a copy of a key and 8 comparisons.
 *
 * How TLS calls it. One `ef_ticket_rule` when a port's context is made (ef_ticket_rule_init, with an HMAC-SHA256 of its
 * library; this is a leaf and links none). In the ticket callback
 *   to encrypt: ef_ticket_encrypt_key. 1: use it, put key.name in front; 0: there is to be no ticket
 *   to decrypt: ef_ticket_decrypt_key. EF_TICKET_UNKNOWN: full handshake; _USE; _RENEW: use it, and send a new ticket
 * then ef_ticket_wipe(&key, sizeof key). `now`: CLOCK_BOOTTIME in milliseconds; one that is read once per turn is new enough.
 * Sessions may live EF_TICKET_LIFETIME seconds at most (SSL_CTX_set_timeout): a secret decrypts at least that long after its end.
 * ef_ticket_rule_wipe when the context is given back. The segment's pages are kept out of dumps by who maps them.
 *
 * Leaf functions: no malloc, no system calls. The ring may be mapped read-only but for ef_ticket_init and ef_ticket_write. */
#ifndef EF_TICKET_H
#define EF_TICKET_H
#include <stddef.h>
#include <stdint.h>
#define EF_TICKET_MAGIC    0x314b5445u /* another one whenever the layout, or what its bytes mean, is another */
#define EF_TICKET_SECRETS  8u          /* previous, current, next; and those of another source that still decrypt */
#define EF_TICKET_SECRET   32
#define EF_TICKET_RULE     32
#define EF_TICKET_NAME     16
#define EF_TICKET_KEY      32
#define EF_TICKET_TRIES    4 /* changes come hours apart: a second one during a copy is a machine that stood still */
#define EF_TICKET_LIFETIME 43200 /* seconds: one period of rotation (proxy/tls/ticket_keys.py) */

#define EF_TICKET_UNKNOWN 0
#define EF_TICKET_USE     1
#define EF_TICKET_RENEW   2

typedef struct ef_ticket_ring ef_ticket_ring;
typedef struct ef_ticket_secret {
    uint8_t secret[EF_TICKET_SECRET];
    uint64_t begins, ends, forgotten; /* begins <= ends <= forgotten */
} ef_ticket_secret;
typedef struct ef_ticket_key {
    uint8_t name[EF_TICKET_NAME]; /* the first bytes of a ticket, in the clear */
    uint8_t aes[EF_TICKET_KEY];   /* AES-256-CBC, with an IV of chance for each ticket */
    uint8_t hmac[EF_TICKET_KEY];  /* HMAC-SHA256 */
} ef_ticket_key;
/* out = HMAC-SHA256(key[32], data). 0, or -1 when the library cannot. */
typedef int (*ef_ticket_hmac)(const uint8_t *key, const uint8_t *data, size_t len, uint8_t *out);
typedef struct ef_ticket_derived {
    ef_ticket_key key;
    uint64_t begins, ends, forgotten;
} ef_ticket_derived;
/* One port's rule in one worker: the caller's memory, not to be shared by threads. */
typedef struct ef_ticket_rule {
    uint8_t digest[EF_TICKET_RULE];
    ef_ticket_hmac hmac;
    uint64_t generation; /* of the ring that `keys` were derived from; 0: none */
    uint32_t count;
    ef_ticket_derived keys[EF_TICKET_SECRETS];
} ef_ticket_rule;

size_t ef_ticket_size(void);
int ef_ticket_init(void *mem, size_t len);                 /* in zeroed memory, aligned to 8; 0, or -1: too short */
int ef_ticket_check(const void *mem, size_t len);          /* 0 when it is a ring of this layout, else -1 */
uint64_t ef_ticket_generation(const ef_ticket_ring *ring); /* grows with each write; 0: nothing was written yet */
/* Copy the secrets in force; wipe them afterwards. Their number, or -1: they change too often to be read. */
int ef_ticket_read(const ef_ticket_ring *ring, ef_ticket_secret out[EF_TICKET_SECRETS]);
/* Put these in the place of all others. 0, or -1: too many, or times out of order; then nothing changed. */
int ef_ticket_write(ef_ticket_ring *ring, const ef_ticket_secret *secrets, uint32_t count);
/* Zero memory in a way that no compiler leaves out. */
void ef_ticket_wipe(void *mem, size_t len);

void ef_ticket_rule_init(ef_ticket_rule *rule, const uint8_t digest[EF_TICKET_RULE], ef_ticket_hmac hmac);
void ef_ticket_rule_wipe(ef_ticket_rule *rule);
/* The key that encrypts now: 1, or 0 when there is none. */
int ef_ticket_encrypt_key(const ef_ticket_ring *ring, ef_ticket_rule *rule, uint64_t now, ef_ticket_key *out);
/* The key of a ticket with this name: EF_TICKET_UNKNOWN, _USE or _RENEW. */
int ef_ticket_decrypt_key(const ef_ticket_ring *ring, ef_ticket_rule *rule, const uint8_t name[EF_TICKET_NAME],
                          uint64_t now, ef_ticket_key *out);
#endif
