/* hasher.h - a thread that tries passwords ($apr1$) and takes no lock: neither the interpreter's nor one of its own.
 *
 * It has the least priority, so that whoever proves who it is has waited least; where others want its CPU it may have to wait for a long time,
 * wherever it is. Nobody may have to wait for it then: jobs and answers are handed over through a ring of EF_HASHER_SLOTS.
 * One thread submits and takes; answers come in the order of their jobs.
 */
#ifndef EF_TLS_HASHER_H
#define EF_TLS_HASHER_H
#include <stddef.h>
#include <stdint.h>

typedef struct ef_hasher ef_hasher;

#define EF_HASHER_SLOTS 64 /* jobs that are not taken back */

ef_hasher *ef_hasher_new(void);            /* NULL: errno says why */
void ef_hasher_free(ef_hasher *hasher);    /* waits for the job that is under way; the others are not made any more */
int ef_hasher_fd(const ef_hasher *hasher); /* readable when there are answers to take */
/* Try a password; both texts are copied, and no copy outlives its job. 0; -1: all slots are taken, or there is no memory. */
int ef_hasher_submit(ef_hasher *hasher, const uint8_t *password, size_t n, const uint8_t *kept, size_t kept_n);
/* 1, 0: the password of the oldest job is, or is not, that of its hash; -1: it is not done yet, or there is none. */
int ef_hasher_take(ef_hasher *hasher);

#endif
