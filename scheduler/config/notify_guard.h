/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides where belayd may connect to for users (submit --notify): services that are only for this
 * machine, or for the machines of a cloud, must not be reachable for every user who may submit.
 * Checked when the connection is made (may_connect in scheduler/notify/notifier.c), so that a name
 * cannot resolve differently afterwards. Pure.
 */
#ifndef BELAY_SCHEDULER_CONFIG_NOTIFY_GUARD_H
#define BELAY_SCHEDULER_CONFIG_NOTIFY_GUARD_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define NOTIFY_ALLOW_MAX 32

/* Zeroed: allows every host, at public addresses that are not this machine's. */
struct notify_guard {
    struct notify_allow {
        char host[64];           /* "hooks.slack.com", "*.example.com"; "": */
        unsigned char bytes[16]; /* a range of addresses; IPv4 as ::ffff:a.b.c.d */
        int bits;
    } allow[NOTIFY_ALLOW_MAX];
    size_t n;
};

/* Adds "hooks.slack.com", "*.example.com", "10.0.0.0/8", "fd00::/8", "192.0.2.7". ERR_INVALID. */
int notify_guard_add(struct notify_guard *g, const char *text, struct err *e);

#define NOTIFY_OWN_MAX 256

/* The addresses of this machine's interfaces. Zeroed is valid and empty. */
struct notify_own {
    unsigned char addresses[NOTIFY_OWN_MAX][16];
    size_t n;
    bool is_incomplete; /* the addresses are unknown, or too many: nothing is allowed */
};
/* Ignores addresses that are neither IPv4 nor IPv6. */
void notify_own_add(struct notify_own *own, const struct sockaddr *address);

/* Allows public addresses, if the host is among the entries or there are none, and addresses in a
 * range of the entries, including private ones and loopback. An address of this machine's
 * interfaces must be listed individually. Never allowed: link-local, multicast, 100.64.0.0/10,
 * 0.0.0.0/8, metadata services. IPv4-mapped, NAT64 and 6to4 addresses count as their IPv4
 * address. */
bool notify_guard_allows(const struct notify_guard *g, const char *host,
    const struct sockaddr *address, const struct notify_own *own);

#endif
