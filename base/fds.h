/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors as parts of messages over UNIX sockets (SCM_RIGHTS, unix(7)).
 */
#ifndef BELAY_BASE_FDS_H
#define BELAY_BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FDS_MAX 8 /* in one message */

/* Sends n bytes, at least one, with n_fds descriptors, of which the caller keeps its own. Does not
 * block, and raises no SIGPIPE. On a stream the peer gets the descriptors with the first byte.
 * Returns 0 or -errno. */
int fds_send(int socket, const void *p, size_t n, const int *fds, size_t n_fds);

/* As recv with these flags, and receives at most max descriptors, which are closed on exec; further
 * ones are closed. The rest of ret_fds is -1. *ret_is_cut (may be NULL): bytes of a message, or
 * descriptors, did not fit. */
ssize_t fds_receive(
    int socket, void *p, size_t n, int flags, int *ret_fds, size_t max, bool *ret_is_cut);

#endif
