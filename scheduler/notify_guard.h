/* SPDX-License-Identifier: Apache-2.0
 *
 * Where belayd may connect to for users (submit --notify): what is only meant for this machine, or for the machines of a cloud, must
 * not be in reach of whoever may submit. Looked at when the connection is made, so that a name cannot first be one thing and then
 * another. Pure.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_GUARD_H
#define BELAY_SCHEDULER_NOTIFY_GUARD_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define NOTIFY_ALLOW_MAX 32

/* Zeroed: every host, but no address of loopback, link-local, multicast and of metadata services. */
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

/* With entries, the host has to be among them, and then none of the addresses above; or the address in a range of them. */
bool notify_guard_allows(const struct notify_guard *g, const char *host, const struct sockaddr *address);

#endif
