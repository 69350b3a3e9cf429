/* SPDX-License-Identifier: Apache-2.0
 *
 * One-use links that sign a browser in (`belay console`):
 *
 *     POST /api/v1/console/link   by the UNIX socket or with a token: 201 {"url": ".../console/
 *                                 sign-in#link=SECRET", ...}
 *     POST /login/link {"link"}   by the page at that URL: 201 and the cookie of a session
 *
 * A link has 256 random bits, is good once and for LINK_MS, and signs in only the user who asked
 * for it. Its secret is behind the `#` of the URL, which browsers send to no server, so it is in no
 * log and in no Referer; and a mere GET of the URL, by a preview or a scanner of mail, does not use
 * it up. belayd has the hashes, in memory: a restart ends the links that are open.
 */
#ifndef BELAY_SCHEDULER_API_LOGIN_LINKS_H
#define BELAY_SCHEDULER_API_LOGIN_LINKS_H

#include "base/list.h"

#define LINK_BYTES 32
#define LINK_MS 60000
#define LINKS_PER_USER 8 /* a further one ends the user's oldest */
#define LINKS_MAX 1024

/* Frees all links. */
void links_deinit(struct list *links);

#endif
