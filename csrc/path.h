/* path.h - normal form of a request path (RFC 3986 6.2.2, merged slashes), before matching and forwarding.
 *
 * ef_path_normalize(): in: the path part of an origin-form target (starts with '/', bytes already checked by the scan).
 *   Returns EF_PATH_SAME (0)    already normal: use the input; what is in out is scratch
 *           EF_PATH_WRITTEN (1) *out_len bytes written to out (out_cap >= len is always enough)
 *           EF_BAD (-1)         invalid: bad percent-encoding, %00, dot segment with ';' ("/..;/", also "%3B"), raw
 *                               backslash, no leading slash; or out_cap < len
 *   *escaped_slash is 1 when the path holds %2F or %5C (any case), else 0; these are kept (upper-case hex) here.
 * Steps, in the order of Envoy: %XX of unreserved bytes decoded, other %XX kept with upper-case hex; "." and ".." segments
 * removed, also when written with %2e (".." above the root stays at the root, RFC 3986 5.2.4; an empty segment is one:
 * "/a//../b" is "/a/b"); "//" merged. The result starts with exactly one slash and normalises to itself.
 * ef_path_unescape_slashes(): %2F and %5C become '/' first, then the same; for the redirect of EscapedSlashes. Always written:
 * EF_PATH_WRITTEN or EF_BAD ("/a%2F..;/" is fine above and invalid here).
 * ef_path_strip_parameters(): in place, of a path in normal form, from byte `from` on: removes the bytes from a ';' to the next '/'
 * and merges adjacent slashes ("/a;v=1/;x/b" is "/a/b"). Returns the new length. The result is in normal form. An escaped
 * ';' (%3B) is data and stays (RFC 3986 2.2, and servlet containers, which cut parameters off before they decode).
 * ef_path_encode_raw(): raw characters that EF_RAW_ALLOW permits in a path become %XX: "/a|b" and "/a%7Cb" are one path. Returns the
 * length written, EF_BAD when out_cap is too small (3 * len is always enough).
 * Cost: one pass without a write for a normal path.
 */
#ifndef EF_PATH_H
#define EF_PATH_H
#include <stddef.h>
#include <stdint.h>
#define EF_PATH_SAME    0
#define EF_PATH_WRITTEN 1
int ef_path_normalize(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap, size_t *out_len,
                      int *escaped_slash);
int ef_path_unescape_slashes(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap, size_t *out_len);
size_t ef_path_strip_parameters(uint8_t *path, size_t len, size_t from);
long ef_path_encode_raw(const uint8_t *path, size_t len, uint8_t *out, size_t out_cap);
/* Percent-decode a query name or value ("+" is a space); returns the decoded length, -1 if out_cap is too small (len is always
 * enough). Malformed escapes are kept as they are. */
long ef_query_decode(const uint8_t *in, size_t len, uint8_t *out, size_t out_cap);
#endif
