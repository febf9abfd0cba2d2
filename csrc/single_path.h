/* single_path.h - a virtual host of one path, matched from what its caller holds beside its name, without a look at its table.
 *
 * Most hosts have one path ("/" of all prefixes above all). Their tables are three lines of memory, and in a port with very many hosts no
 * request finds them in a cache. What a match needs fits into 16 bytes:
 *
 *   ef_single_path_read()   once per table: 1 and the path, or 0: the table has to be asked (more than one candidate, predicates on
 *                    headers or the query, a regex, fragments, a path of more than EF_SINGLE_PATH bytes)
 *   ef_single_path_match()  per request: what ef_route_begin and the first ef_route_next would say, but for hit->where, which only predicates need
 *
 * There is never a second hit. Must never be asked about another blob than the one it was read from.
 */
#ifndef EF_SINGLE_PATH_H
#define EF_SINGLE_PATH_H
#include <stdint.h>

#include "route.h"

#define EF_SINGLE_PATH 12u

typedef struct ef_single_path {
    uint8_t holds;  /* 0: nothing was read, nothing else is set */
    uint8_t kind;   /* EF_PATH_EXACT or EF_PATH_PREFIX */
    uint8_t method; /* enum ef_method, 0 any */
    uint8_t len;
    uint8_t path[EF_SINGLE_PATH];
} ef_single_path;

_Static_assert(sizeof(ef_single_path) == 16, "a quarter of a cache line");

int ef_single_path_read(const ef_blob *root, ef_single_path *sole);

int ef_single_path_match(const ef_single_path *sole, const ef_blob *root, const ef_request *request, ef_hit *hit);
#endif
