/* SPDX-License-Identifier: Apache-2.0
 *
 * Where belayd may connect to for users (submit --notify): what is only meant for this machine, or
 * for the machines of a cloud, must not be in reach of whoever may submit. Looked at when the
 * connection is made, so that a name cannot first be one thing and then another. Pure.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFY_GUARD_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFY_GUARD_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define NOTIFY_ALLOW_MAX 32

/* Zeroed: every host, at public addresses that are not this machine's. */
struct notify_guard {
    struct notify_allow {
        char host[64];           /* "hooks.slack.com", "*.example.com"; "": */
        unsigned char bytes[16]; /* a range of addresses; IPv4 as ::ffff:a.b.c.d */
        int bits;
    } allow[NOTIFY_ALLOW_MAX];
    size_t n;
};

/* "hooks.slack.com", "*.example.com", "10.0.0.0/8", "fd00::/8", "192.0.2.7". ERR_INVALID. */
int notify_guard_add(struct notify_guard *g, const char *text, struct err *e);

#define NOTIFY_OWN_MAX 256

/* The addresses of this machine's interfaces. Zeroed is valid and empty. */
struct notify_own {
    unsigned char addresses[NOTIFY_OWN_MAX][16];
    size_t n;
    bool is_incomplete; /* they are not known, or too many: nothing is allowed */
};
/* Of another family than IPv4 and IPv6: nothing. */
void notify_own_add(struct notify_own *own, const struct sockaddr *address);

/* Public addresses, if the host is among the entries or there are none; and those in a range of the
 * entries, private ones and loopback too, one of this machine's interfaces only if it is listed by
 * itself. Never: link-local, multicast, 100.64.0.0/10, 0.0.0.0/8, metadata services. IPv4-mapped,
 * NAT64 and 6to4 addresses count as those of IPv4 that they lead to. */
bool notify_guard_allows(const struct notify_guard *g, const char *host,
    const struct sockaddr *address, const struct notify_own *own);

#endif
