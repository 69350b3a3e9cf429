/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates made at run time, EC P-256, for tests of TLS.
 */
#ifndef BELAY_TESTS_UV_CERTS_H
#define BELAY_TESTS_UV_CERTS_H

#include <stdbool.h>
#include <stddef.h>

struct cert {
    char *cert_pem, *key_pem; /* free with cert_deinit */
};

struct cert_options {
    const char *cn;        /* NULL for a subject without common name */
    const char *second_cn; /* may be NULL */
    const char *san;       /* "DNS:localhost,IP:127.0.0.1"; may be NULL */
    const char *usage;     /* extended key usage, "clientAuth"; may be NULL */
    bool is_ca;
    bool is_expired;
    int valid_s;               /* 0 = an hour */
    const struct cert *issuer; /* NULL = self-signed */
};

struct cert cert_make(const struct cert_options *o);
struct cert cert_copy(const struct cert *c);
/* OpenSSL's name for it in a directory of trusted certificates, without the ".0". */
void cert_name_hash(const struct cert *c, char *out, size_t size);
void cert_deinit(struct cert *c);

#endif
