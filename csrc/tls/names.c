/* names.c - names of a backend's certificate that are wanted instead of the one that was asked for (subjectAltNames of a policy). */
#include "internal.h"

#include <string.h>
#include <strings.h>

/* RFC 6125 6.4.3: a wildcard stands for the whole first label and nothing else; of a whole top-level domain nobody has a certificate
 * (libraries, which compare the name that is asked for, say the same). */
static int covers(const char *pattern, size_t n, const char *name, size_t name_n) {
    if (n > 2 && pattern[0] == '*' && pattern[1] == '.' && memchr(pattern + 2, '.', n - 2)) {
        const char *dot = memchr(name, '.', name_n);
        if (!dot || dot == name) return 0;
        name_n -= (size_t)(dot - name);
        name = dot;
        pattern++;
        n--;
    }
    return n == name_n && strncasecmp(pattern, name, n) == 0;
}

static int is_wanted(const ef_tls_context *context, int is_uri, const char *name, size_t n) {
    if (memchr(name, 0, n)) /* a name that ends early for some readers is none */
        return 0;
    for (const ef_tls_san *san = context->sans; san; san = san->next) {
        if (san->is_uri != is_uri) continue;
        if (is_uri ? san->n == n && memcmp(san->name, name, n) == 0 : covers(name, n, san->name, san->n)) return 1;
    }
    return 0;
}

int ef_tls_names_allowed(const ef_tls_context *context, SSL *ssl) {
    int found = 0;
    if (!context->sans) return 1;
    X509 *peer = SSL_get_peer_certificate(ssl);
    GENERAL_NAMES *names = peer ? X509_get_ext_d2i(peer, NID_subject_alt_name, NULL, NULL) : NULL;
    for (size_t i = 0; names && !found && i < (size_t)sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(names, (int)i);
        if (one->type != GEN_DNS && one->type != GEN_URI) continue;
        const ASN1_IA5STRING *text = one->type == GEN_DNS ? one->d.dNSName : one->d.uniformResourceIdentifier;
        found = is_wanted(context, one->type == GEN_URI, (const char *)ASN1_STRING_get0_data(text),
                          (size_t)ASN1_STRING_length(text));
    }
    GENERAL_NAMES_free(names);
    X509_free(peer);
    ERR_clear_error();
    return found;
}
