/* SPDX-License-Identifier: Apache-2.0
 *
 * How Google's access tokens are asked for: with an assertion signed by a service account's key
 * (RFC 7523), or from the metadata service of the instance that this runs on. The token itself is
 * cached by cloud/oauth.h.
 *
 * An assertion goes to https://oauth2.googleapis.com, or to the host that the pool's `endpoint`
 * names, and nowhere else, whatever the key file says.
 */
#ifndef BELAY_CLOUD_GCP_CREDENTIALS_H
#define BELAY_CLOUD_GCP_CREDENTIALS_H

#include "base/buf.h"
#include "cloud/oauth.h"

#define GCP_KEY_FILE_MAX 65536

struct gcp_key {
    char client_email[257];
    char private_key_id[129]; /* "": none */
    char token_uri[513];      /* "": https://oauth2.googleapis.com/token */
    char private_key_pem[8193];
};

struct gcp_credential_options {
    /* of a key; NULL: GOOGLE_APPLICATION_CREDENTIALS, else the metadata service */
    const char *file;
    const char *endpoint_url; /* whose host may be asked for tokens, too; NULL: none */
    const char *metadata_url; /* NULL: http://169.254.169.254 */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

struct gcp_credential_source;

/* Copies what it needs; reads the environment here and never again. The key file is read at each
 * fetch, so it may be replaced. ERR_CONFIG: metadata_url is none. */
int gcp_credential_source_create(const struct gcp_credential_options *o,
    struct gcp_credential_source **ret_source, struct err *e);
void gcp_credential_source_destroy(struct gcp_credential_source *s);

/* Where the driver gets its headers. Borrowed until destroy. ERR_CONFIG: no credentials, or a file
 * that is none; ERR_DENIED: refused. */
struct oauth *gcp_credential_oauth(struct gcp_credential_source *s);

/* Pure: a key file, as Google makes them. ERR_CONFIG says what is missing, never what is there.
 * Wipe the key. */
int gcp_key_parse(const char *text, size_t n, struct gcp_key *ret_key, struct err *e);

/* Pure: the signed assertion for audience, good for an hour from now, is appended to out.
 * ERR_CONFIG: the key is no RSA key of 2048 bits or more. */
int gcp_key_assertion(const struct gcp_key *key, const char *audience, struct wall now,
    struct buf *out, struct err *e);

/* Pure: whether an assertion may go to this address. */
bool gcp_token_uri_is_trusted(const char *token_uri, const char *endpoint_url);

#endif
