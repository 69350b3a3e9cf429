/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster's own certificate authority: EC P-256, created at belayd's first start. Its key never
 * leaves the state directory (mode 0600). It signs the server's certificate and one certificate a
 * node; it is the only CA that either side trusts.
 */
#ifndef BELAY_SCHEDULER_CA_H
#define BELAY_SCHEDULER_CA_H

#include "base/buf.h"
#include "base/time.h"

struct ca;

/* Loads ca.pem and ca.key from dir, or creates them. ERR_CORRUPT if they do not match. */
int ca_open(const char *dir, const char *cluster, const struct clock *clock, struct ca **ret_ca,
    struct err *e);
void ca_close(struct ca *c); /* c may be NULL */

const char *ca_pem(const struct ca *c);     /* the CA's certificate; borrowed */
struct wall ca_ends_at(const struct ca *c); /* nothing that it signed is valid after that */

/* Issues a new key and certificate for the server, for these host names and addresses (always
 * including localhost, 127.0.0.1 and ::1). Valid as long as the CA: belayd issues one at each start
 * and keeps the key in memory, and an earlier expiry would disconnect all agents from a belayd that
 * keeps running. The caller owns both texts. */
int ca_issue_server(struct ca *c, const char *const *names, size_t n_names, char **ret_cert_pem,
    char **ret_key_pem, struct err *e);

/* Checks a PEM request's own signature and that its key is EC P-256, and signs it with CN = cn
 * (whatever the request says), for client use, valid for life_ms. */
int ca_issue_node(struct ca *c, const char *csr_pem, const char *cn, int64_t life_ms,
    char **ret_cert_pem, struct err *e);
/* Returns the SHA-256 of the public key in a request, as hex, after the same checks. */
int ca_csr_key_hash(const char *csr_pem, char ret_key_hash[65], struct err *e);

/* Hex SHA-256 of a text, for tokens. */
void ca_sha256_hex(const char *text, char out[65]);

#endif
