/* SPDX-License-Identifier: Apache-2.0
 *
 * If the limit of open files allows all connections of the table in docs/reference/api.md, each
 * class gets its maximum there. Otherwise, unauthenticated clients get up to a third of the
 * connections: every client begins as one, so their number decides how long a handshake may take in
 * a flood. Nodes get half of the rest, and the users of each of the two listeners half of what then
 * remains.
 */
#include "scheduler/open_files.h"

#include "base/minmax.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

#define UNAUTHENTICATED_MAX 2048
#define USERS_MAX 8192
#define NODES_MAX 15000
#define USERS_EACH_MAX 1024
#define NODES_EACH_MAX 256
#define EACH_MIN 8 /* commands and long polls of one user, transfers of one node */
#define BROWSERS_MIN 12
#define BROWSERS_MAX 512
#define OUTGOING_MIN 8
#define OUTGOING_MAX 1024
/* Files for belayd itself: some 30 are open when it is idle, and resolving a name opens several. */
#define RESERVE_MIN 64
#define RESERVE_MAX 4096

static int clamp_to(int64_t n, int64_t min, int64_t max)
{
    return (int)max_i64(min, min_i64(n, max));
}

int open_files_divide(int64_t max, struct open_files *ret_files, struct err *e)
{
    if (max < OPEN_FILES_MIN)
        return err_set(e, ERR_CONFIG,
            "belayd may open %" PRId64 " files at a time and needs at least %d: raise the hard "
            "limit (ulimit -Hn, or LimitNOFILE= of its systemd unit); %d are enough for any "
            "cluster",
            max, OPEN_FILES_MIN, OPEN_FILES_MAX);
    int64_t clients = max - min_i64(RESERVE_MIN + max / 8, RESERVE_MAX);
    struct open_files f = {.max = max};
    f.unauthenticated = (int)min_i64(UNAUTHENTICATED_MAX, clients / 3);
    clients -= f.unauthenticated;
    f.nodes = (int)min_i64(NODES_MAX, clients / 2);
    f.users = f.users_at_socket = (int)min_i64(USERS_MAX, (clients - f.nodes) / 2);
    f.users_each =
        clamp_to(f.users * USERS_EACH_MAX / USERS_MAX, min_i64(EACH_MIN, f.users), f.users);
    f.nodes_each = clamp_to(
        (int64_t)f.nodes * NODES_EACH_MAX / NODES_MAX, min_i64(EACH_MIN, f.nodes), f.nodes);
    f.browsers = clamp_to(max / 32, BROWSERS_MIN, BROWSERS_MAX);
    f.outgoing = clamp_to(max / 16, OUTGOING_MIN, OUTGOING_MAX);
    *ret_files = f;
    return 0;
}

int open_files_raise(struct open_files *ret_files, struct err *e)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return err_errno(e, errno, "reading the limit of open files");
    rlim_t wanted = l.rlim_max < OPEN_FILES_MAX ? l.rlim_max : OPEN_FILES_MAX;
    if (l.rlim_cur < wanted) {
        struct rlimit raised = {wanted, l.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            l = raised;
    }
    return open_files_divide(
        l.rlim_cur < OPEN_FILES_MAX ? (int64_t)l.rlim_cur : OPEN_FILES_MAX, ret_files, e);
}

bool open_files_are_few(const struct open_files *files)
{
    return files->max < OPEN_FILES_FEW;
}
