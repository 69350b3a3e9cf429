/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/fence.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/store/marker.h"
#include "cli/keys.h"
#include <stdlib.h>
#include <string.h>

#define PLACES_BYTES_MAX (64u << 10)

struct fence {
    const char *uid;
    int64_t epoch;
    bool writes;
    int n;
    const char *cluster; /* of the place in hand */
};

static int fence_marker(void *ctx, struct store *s, struct err *e)
{
    struct fence *f = ctx;
    struct marker mark;
    int rc = marker_read(s, f->cluster, &mark, e);
    if (rc != 0 || mark.generation == 0 || !str_eq(mark.uid, f->uid))
        return rc; /* another cluster's store by now: it is no place to fence */
    if (!f->writes && mark.epoch > f->epoch)
        f->epoch = mark.epoch;
    if (f->writes)
        rc = marker_write(s, f->cluster, &mark, f->uid, f->epoch, clock_wall(&clock_system).ms, e);
    f->n += rc == 0;
    return rc;
}

static int fence_place(struct fence *f, const char *cluster, const char *url, struct err *e)
{
    f->cluster = cluster;
    int rc = keys_with_store(url, fence_marker, f, e);
    if (rc == ERR_NOT_FOUND && str_starts(url, "file:"))
        return 0; /* gone with the machine */
    return rc == 0 ? 0 : err_wrap(e, "fence the earlier belayd in the checkpoint store %s", url);
}

/* Lines of a cluster's name and a URL. */
static int each_place(const char *places, struct fence *f, struct err *e)
{
    struct buf text = {0};
    char *rest = NULL;
    int rc = fs_read(places, PLACES_BYTES_MAX, &text, e);
    if (rc == ERR_NOT_FOUND) /* no store was ever claimed */
        rc = 0;
    else if (rc == 0)
        for (char *line = strtok_r(text.data, "\n", &rest); line && rc == 0;
             line = strtok_r(NULL, "\n", &rest)) {
            char *blank = strchr(line, ' ');
            if (!blank)
                continue;
            *blank = '\0';
            rc = fence_place(f, line, blank + 1, e);
        }
    buf_deinit(&text);
    return rc;
}

int fence_read(
    const char *places, const char *uid, int64_t least, int64_t *ret_epoch, struct err *e)
{
    struct fence f = {.uid = uid, .epoch = least};
    int rc = each_place(places, &f, e);
    if (rc == 0)
        *ret_epoch = f.epoch;
    return rc;
}

int fence_write(const char *places, const char *uid, int64_t epoch, int *ret_n, struct err *e)
{
    struct fence f = {.uid = uid, .epoch = epoch, .writes = true};
    int rc = each_place(places, &f, e);
    *ret_n = f.n;
    return rc;
}
