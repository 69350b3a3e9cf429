/* SPDX-License-Identifier: Apache-2.0
 *
 * A user delegation SAS: a query string that gives its holder some rights to one container's blobs
 * until it expires. It is signed with a key that the Blob service issues to an identity (Get User
 * Delegation Key), so it contains no account key, and permits no more than that identity may do.
 * Pure functions.
 *
 * In accounts without a hierarchical namespace, the only ones that the store supports, the smallest
 * scope of a SAS with more than one blob is the container; there is none for a prefix.
 *
 * Source: Storage services REST API, "Get User Delegation Key", "Create a user delegation SAS".
 */
#ifndef BELAY_CLOUD_AZURE_SAS_H
#define BELAY_CLOUD_AZURE_SAS_H

#include "base/buf.h"
#include "base/time.h"

#define SAS_REPLY_MAX 65536
#define SAS_LIFE_MAX_MS SECONDS_MS(7 * 86400) /* of the key: the service's limit */
#define SAS_KEY_PATH "/?restype=service&comp=userdelegationkey"
#define SAS_API_VERSION "2021-12-02"

struct sas_key {
    char oid[65], tid[65];      /* owner of the key: object and tenant */
    char start[33], expiry[33]; /* as the service wrote them: they are signed verbatim */
    char service[9], version[17];
    unsigned char value[64];
    size_t n;
};

struct sas_scope {
    const char *account, *container;
    struct wall expiry; /* not after the key's */
    bool allows_http;   /* for a server on this machine */
};

/* Appends the body of the request for a key. */
void sas_build_key_request(struct wall start, struct wall expiry, struct buf *out);
/* Parses a reply with status 200. ERR_INVALID; never quotes the text. Wipe *ret_key. */
int sas_parse_key(const char *body, size_t n, struct sas_key *ret_key, struct err *e);
/* Parses any other reply. ERR_DENIED, ERR_CONFIG, ERR_THROTTLED, ERR_UNAVAILABLE. code: from the
 * header x-ms-error-code; may be NULL. */
int sas_parse_error(int status, const char *code, const char *body, size_t n, struct err *e);

/* Appends the query, "sv=...&sig=...", without a '?': read, create, write, delete and list blobs of
 * the container. */
void sas_sign(const struct sas_key *key, const struct sas_scope *s, struct buf *out);

#endif
