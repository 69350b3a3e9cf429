/* SPDX-License-Identifier: Apache-2.0
 *
 * Google access tokens: requested with an assertion signed by a service account's key (RFC 7523),
 * or from the metadata service of the instance that this process runs on. cloud/oauth.h caches the
 * token.
 *
 * An assertion is only sent to https://oauth2.googleapis.com, or to the host of the pool's
 * `endpoint`, whatever the key file says.
 */
#ifndef BELAY_CLOUD_GCP_CREDENTIALS_H
#define BELAY_CLOUD_GCP_CREDENTIALS_H

#include "base/buf.h"
#include "cloud/oauth.h"

#define GCP_KEY_FILE_MAX 65536

struct gcp_key {
    char client_email[257];
    char private_key_id[129]; /* "" if absent */
    char token_uri[513];      /* "" for https://oauth2.googleapis.com/token */
    char private_key_pem[8193];
};

struct gcp_credential_options {
    /* of a key; NULL for GOOGLE_APPLICATION_CREDENTIALS, else the metadata service */
    const char *file;
    const char *endpoint_url; /* its host may also issue tokens; may be NULL */
    const char *metadata_url; /* NULL for http://169.254.169.254 */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

struct gcp_credential_source;

/* Copies what it needs; reads the environment here only. The key file is read at each fetch, so
 * that it can be replaced. ERR_CONFIG: malformed metadata_url. */
int gcp_credential_source_create(const struct gcp_credential_options *o,
    struct gcp_credential_source **ret_source, struct err *e);
void gcp_credential_source_destroy(struct gcp_credential_source *s);

/* The token cache for the driver. Borrowed until destroy. ERR_CONFIG: no credentials, or a
 * malformed file; ERR_DENIED: refused. */
struct oauth *gcp_credential_oauth(struct gcp_credential_source *s);

/* Pure: parses a key file made by Google. ERR_CONFIG names what is missing, never what is there.
 * Wipe the key. */
int gcp_key_parse(const char *text, size_t n, struct gcp_key *ret_key, struct err *e);

/* Pure: appends the signed assertion for audience, valid for an hour from now, to out. ERR_CONFIG:
 * the key is not an RSA key of at least 2048 bits. */
int gcp_key_assertion(const struct gcp_key *key, const char *audience, struct wall now,
    struct buf *out, struct err *e);

/* Pure: whether an assertion may be sent to this address. */
bool gcp_token_uri_is_trusted(const char *token_uri, const char *endpoint_url);

#endif
