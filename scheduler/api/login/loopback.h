/* SPDX-License-Identifier: Apache-2.0
 *
 * The listener for browsers on belayd's own machine: plain HTTP on 127.0.0.1, at a free port,
 * opened when the first link is made over the UNIX socket (links.h), and until belayd ends.
 *
 * Why not the HTTPS listener: its certificate is the cluster's own, and a browser that does not
 * know the cluster's CA warns of it. Nothing on 127.0.0.1 leaves the machine, so TLS would protect
 * from root only. Browsers know that: an origin below `localhost` is a secure context to them, and
 * they accept Secure cookies and the prefix __Host- from it.
 *
 * But every local user reaches the port, and so does every page in a browser on this machine:
 *
 * - Requests need a name in Host, NAME.localhost:PORT, that is made anew at each start and for each
 *   user. Browsers resolve it to this machine without DNS. The name keeps out pages that resolve to
 *   127.0.0.1 (DNS rebinding).
 * - Cookies do not tell ports apart, but names: the session's is not sent to a server that another
 *   user has on another port. No user learns the name of another, who could lead them to such a
 *   server under it.
 * - A session ends when belayd ends. Whoever takes the port then gets cookies that are of no use
 *   (api_token_hash).
 * - Without a session or a token there is nothing here but the console's files and the sign-in;
 *   calls of agents are refused.
 */
#ifndef BELAY_SCHEDULER_API_LOGIN_LOOPBACK_H
#define BELAY_SCHEDULER_API_LOGIN_LOOPBACK_H

#include "base/err.h"

struct api;
struct loopback;

#define LOOPBACK_ORIGIN_MAX 96
/* Users with a name; more of them on one machine get ERR_THROTTLED. */
#define LOOPBACK_NAMES_MAX 4096

/* Opens it unless it is open. ret_origin: of this user, "http://NAME.localhost:PORT". */
int loopback_open(
    struct api *a, const char *user, char ret_origin[LOOPBACK_ORIGIN_MAX], struct err *e);
/* A secret of this listener; "" if it is not open. l may be NULL. */
const char *loopback_key(const struct loopback *l);
/* Closes the listener, before the loop's last run; l may be NULL. Its key stays. */
void loopback_stop(struct loopback *l);
void loopback_destroy(struct loopback *l); /* after loopback_stop; l may be NULL */

#endif
