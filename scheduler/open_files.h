/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides the descriptors that belayd may open (RLIMIT_NOFILE) between connections of clients,
 * connections to providers, and a reserve for everything else: the database and its readers, logs,
 * uploads, programs, name resolution. Without the division, a flood of connections would leave no
 * descriptor for a query of the database.
 */
#ifndef BELAY_SCHEDULER_OPEN_FILES_H
#define BELAY_SCHEDULER_OPEN_FILES_H

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

#define OPEN_FILES_MIN 128   /* belayd does not start with fewer, */
#define OPEN_FILES_FEW 8192  /* warns of fewer, */
#define OPEN_FILES_MAX 65536 /* and needs no more for its largest limits */

struct open_files {
    int64_t max; /* descriptors that may be open at a time */
    /* connections of clients: of each class of the HTTPS listener, and at the UNIX socket */
    int unauthenticated, users, nodes, users_at_socket;
    int users_each, nodes_each; /* of one user at a listener, of one node */
    int browsers;               /* of this machine (api/login/loopback.h): all; from the reserve */
    int outgoing;               /* connections to providers and login services */
};

/* Pure. ERR_CONFIG if max is less than OPEN_FILES_MIN. */
int open_files_divide(int64_t max, struct open_files *ret_files, struct err *e);
/* Raises this process's limit to its hard limit, at most OPEN_FILES_MAX, and divides it. A limit
 * that is higher already stays. */
int open_files_raise(struct open_files *ret_files, struct err *e);
/* Whether the connections of clients have limits that a cluster of usual size may reach. */
bool open_files_are_few(const struct open_files *files);

#endif
