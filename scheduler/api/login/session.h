/* SPDX-License-Identifier: Apache-2.0
 *
 * The session of a browser that signed in with a token or with a link (links.h): a row of the table
 * tokens with `session`, whose own token is in the browser's cookie.
 *
 *     POST /login/session {"token"}  --> 201 and the cookie; Origin must be this server's
 *
 * The token that was shown is not what the browser keeps. A token of a script may never expire, and
 * lies where its owner put it; a copy in a browser's profile would be one more place that nobody
 * lists. A session is a row of its own in the list of tokens, can be revoked alone, ends after
 * SESSION_MS at the latest, and with the token that it came from: api_callers.c checks that at each
 * call. It has the role and the scope of that token, and begins no further session. A browser that
 * signs in again as the same user keeps its session if it would get the same, else ends it.
 * Sign-ins at an identity provider have a short token of their own already (sign_in.h), which is in
 * the cookie.
 *
 * Cookies are sent by the browser whatever page causes the call, so they alone prove nothing. A
 * call with a cookie that is not a GET needs an Origin that is this server's, and the header
 * X-CSRF-Token with the `csrf` of GET /api/v1/whoami: an HMAC of the cookie's token under the
 * cluster's key, which is not stored. Calls that are a GET change nothing.
 *
 * The tokens of sessions at the loopback listener (loopback.h) begin with LOOPBACK_PREFIX. Their
 * hash has the listener's key in it, so they end with the listener.
 */
#ifndef BELAY_SCHEDULER_API_LOGIN_SESSION_H
#define BELAY_SCHEDULER_API_LOGIN_SESSION_H

#include "scheduler/api/api_private.h"

#define SESSION_MS (3 * DAY_MS)
#define SESSION_PREFIX "s."
#define LOOPBACK_PREFIX "l."

/* Whose a session is. */
struct session_grant {
    int64_t parent; /* the token whose rights it has; 0: none, but these: */
    char user[CORE_NAME_MAX];
    bool admin;
};

/* Reads {"KEY": "text"}, the body of a sign-in. ERR_INVALID; then out is "". */
int session_read_secret(const json_t *body, const char *key, char *out, size_t size, struct err *e);

/* Answers q with a new session and its cookie, or with the one that the browser has. */
void session_begin(struct request *q, const struct session_grant *g);
/* False after an error reply: the request comes from a page of another site, or the browser is
 * signed in as somebody else. */
bool session_may_begin(struct request *q, const char *user);

/* Reads the row, also as the tick has changed it, if its token is valid now. ERR_NOT_FOUND if it is
 * not. t may be NULL. */
int session_read_parent(
    const struct api *a, const struct tick *t, int64_t id, struct token_row *ret, struct err *e);

#endif
