/* SPDX-License-Identifier: Apache-2.0
 *
 * Bearer tokens (RFC 6750): one cache with one fetch under way at most; all who wait get its
 * outcome. How a token is asked for is the provider's: a request builder and a reply parser. Tokens
 * and requests are wiped when they are replaced or freed, and never get into an error or a log
 * line.
 */
#ifndef BELAY_CLOUD_OAUTH_H
#define BELAY_CLOUD_OAUTH_H

#include "base/http.h"
#include "base/list.h"
#include "base/timers.h"

#define OAUTH_TOKEN_MAX 8192
#define OAUTH_REPLY_MAX 65536
#define OAUTH_HEADER_MAX (OAUTH_TOKEN_MAX + sizeof("Authorization: Bearer "))

struct oauth_token {
    char text[OAUTH_TOKEN_MAX + 1]; /* visible ASCII: fit for a header line */
    int64_t expires_in_s;
};

/* One request for a token; zeroed but for what the builder sets. */
struct oauth_request {
    const char *method; /* static, like header */
    const char *header; /* "Name: value", NULL: none */
    char *url;          /* mem_*; freed by the cache, like body */
    struct buf body;
    const char *ca_pem; /* borrowed for the call; NULL: the system's store */
    int64_t timeout_ms;
};

struct oauth_ops {
    /* Not blocking but for small files. Errors are handed to those who wait as they are. */
    int (*build)(void *ctx, struct oauth_request *r, struct err *e);
    /* Of any status. */
    int (*parse)(
        void *ctx, const struct http_reply *reply, struct oauth_token *ret_token, struct err *e);
};

struct oauth;

/* ops is static; ctx, http and timers are borrowed until destroy. */
struct oauth *oauth_create(
    const struct oauth_ops *ops, void *ctx, struct http_client *http, struct timers *timers);
/* Asks for a new token from so long before an end on, instead of 4 minutes. */
void oauth_renew_before(struct oauth *o, int64_t early_ms);
/* Waits under way are dropped: their done does not run. Not to be called inside a done. NULL is
 * fine. */
void oauth_destroy(struct oauth *o);

/* e NULL: header, "Authorization: Bearer ...", borrowed for the call. Else what build, the HTTP
 * client or parse said. */
typedef void (*oauth_fn)(void *ctx, const struct err *e, const char *header);

/* A wait for a token; lives in the object that waits. Private. */
struct oauth_wait {
    struct link link;
    oauth_fn done;
    void *ctx;
    uint64_t generation; /* of the token that was handed out */
};

/* done runs once, not inside the call. A token is asked for when there is none, or from 4 minutes
 * (or a quarter of its life, if that is less) before its end; a renewal that fails or brings
 * nothing newer is tried again half a minute later, and meanwhile the old one is handed out until
 * its end. */
void oauth_get(struct oauth *o, struct oauth_wait *w, oauth_fn done, void *ctx);
/* done will not run. Harmless on a wait that is over or zeroed. */
void oauth_cancel(struct oauth_wait *w);
/* How long the token that is there lasts still; 0: there is none. For a done, of the token that it
 * is given. */
int64_t oauth_left_ms(const struct oauth *o);
/* The provider refused the token that this wait, now over, was given: it is dropped, unless a newer
 * one has taken its place. */
void oauth_refused(struct oauth *o, const struct oauth_wait *w);

/* Pure, for parse: RFC 6749, sections 5.1 and 5.2. expires_in may be a number or, as some servers
 * send it, its text. ERR_INVALID for a malformed reply with status 200. Other statuses:
 * ERR_THROTTLED for 429, ERR_UNAVAILABLE for 5xx, else ERR_DENIED; the error includes `error` and
 * `error_description` if the body has them. */
int oauth_parse_reply(
    int status, const char *body, size_t n, struct oauth_token *ret_token, struct err *e);
/* The same of RFC 8693: a reply without expires_in is good for life_s (1 or more). */
int oauth_parse_exchange(int status, const char *body, size_t n, int64_t life_s,
    struct oauth_token *ret_token, struct err *e);

#endif
