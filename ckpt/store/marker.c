/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/marker.h"

#include "base/json.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/store/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1

static bool uid_is_valid(const char *uid)
{
    for (; *uid; uid++)
        if (!((*uid >= '0' && *uid <= '9') || (*uid >= 'a' && *uid <= 'f')))
            return false;
    return true;
}

int marker_parse(const char *text, size_t n, struct marker *ret_mark, struct err *e)
{
    struct marker mark = {0};
    struct json_reader r;
    json_t *v = NULL;
    int rc = json_parse(text, n, MARKER_BYTES_MAX, &v, e);

    if (rc)
        return err_set(e, ERR_CORRUPT, "it is not a marker: %s", e ? e->text : "not JSON");
    json_reader_init(&r, v, "marker", e);
    json_req_i64(&r, "format", FORMAT, FORMAT);
    json_req_strcpy(&r, "uid", mark.uid, sizeof(mark.uid));
    mark.created_at_ms = json_req_i64(&r, "created_at_ms", 0, INT64_MAX);
    mark.epoch = json_opt_i64(&r, "epoch", 0, INT32_MAX, 0);
    if (!uid_is_valid(mark.uid))
        json_reader_fail(&r, "uid", "expected lower-case hex digits");
    rc = json_reader_finish_lenient(&r);
    json_decref(v);
    if (rc)
        return err_set(e, ERR_CORRUPT, "not a marker that this belay knows: %s", e ? e->text : "");
    *ret_mark = mark;
    return 0;
}

static struct layout_name marker_name(const char *cluster, int64_t generation)
{
    struct layout_name name;

    snprintf(name.s, sizeof(name.s), "%s/owner/%010" PRId64, cluster, generation);
    return name;
}

static int newest(struct store *s, const char *cluster, int64_t *ret_generation, struct err *e)
{
    struct layout_name prefix;
    int rc;

    snprintf(prefix.s, sizeof(prefix.s), "%s/owner/", cluster);
    rc = layout_find_latest(s, prefix.s, '\0', ret_generation, e);
    return rc ? err_wrap(e, "look for the store's marker") : 0;
}

int marker_read(struct store *s, const char *cluster, struct marker *ret_mark, struct err *e)
{
    struct buf text = {0};
    int64_t generation = 0;
    int rc = newest(s, cluster, &generation, e);

    if (!rc && generation == 0) {
        *ret_mark = (struct marker){0};
        return 0;
    }
    struct layout_name name = marker_name(cluster, generation);
    struct marker mark = {0};
    if (!rc)
        rc = s->ops->read(s, name.s, MARKER_BYTES_MAX, &text, e);
    if (rc == ERR_INVALID) /* larger than any marker */
        rc = err_set(e, ERR_CORRUPT, "it is not a marker: %s", e ? e->text : "too large");
    else if (!rc)
        rc = marker_parse(text.data, text.len, &mark, e);
    mark.generation = generation;
    if (!rc || rc == ERR_CORRUPT)
        *ret_mark = mark;
    buf_deinit(&text);
    return rc ? err_wrap(e, "read the store's marker %s", name.s) : 0;
}

int marker_write(struct store *s, const char *cluster, const struct marker *over, const char *uid,
    int64_t epoch, int64_t now_ms, struct err *e)
{
    struct layout_name name = marker_name(cluster, over->generation + 1),
                       before = marker_name(cluster, over->generation);
    const char *const names[] = {before.s};
    json_t *v = json_pack("{s:i,s:o,s:o,s:I,s:I}", "format", FORMAT, "cluster", json_text(cluster),
        "uid", json_text(uid), "created_at_ms", (json_int_t)now_ms, "epoch", (json_int_t)epoch);
    char *text = json_dump_text(v);
    int rc = s->ops->create(s, name.s, text, strlen(text), e);

    json_decref(v);
    free(text);
    if (!rc && over->generation > 0)
        rc = s->ops->remove(s, names, 1, e);
    return rc ? err_wrap(e, "write the store's marker %s", name.s) : 0;
}

int marker_check(struct store *s, const char *cluster, const char *uid, struct err *e)
{
    struct marker mark;
    int rc = marker_read(s, cluster, &mark, e);

    if (rc == ERR_NOT_FOUND) /* replaced between the listing and the read: once more */
        rc = marker_read(s, cluster, &mark, e);
    if (rc)
        return rc;
    if (mark.generation == 0)
        return err_set(e, ERR_NOT_FOUND,
            "it has no marker of this cluster (%s/owner/): it is not mounted here, was emptied, or "
            "is another store",
            cluster);
    if (!str_eq(mark.uid, uid))
        return err_set(e, ERR_DENIED, "it belongs to another cluster of the name %s%s%s", cluster,
            mark.uid[0] ? ", uid " : ", given up", mark.uid);
    return 0;
}

struct survey {
    size_t skip;
    bool any;
    int64_t counted; /* last job that was counted */
    struct marker_contents found;
};

/* "<job>/manifests/...": names come in byte order, so those of a job are adjacent. */
static int note_object(void *ctx, const char *name, int64_t size_bytes)
{
    struct survey *s = ctx;
    const char *rest = name + s->skip;
    char *end;
    int64_t job = strtoll(rest, &end, 10);

    (void)size_bytes;
    if (end == rest || *end != '/' || job < 1 || job > CKPT_NUMBER_MAX)
        return 0;
    if (job > s->found.last_job)
        s->found.last_job = job;
    if (!str_starts(end, "/manifests/"))
        return 0;
    s->found.checkpoints++;
    s->found.jobs += job != s->counted;
    s->counted = job;
    return s->any;
}

int marker_survey(struct store *s, const char *cluster, bool any,
    struct marker_contents *ret_contents, struct err *e)
{
    struct layout_name prefix;
    struct survey found = {.any = any};
    int rc;

    snprintf(prefix.s, sizeof(prefix.s), "%s/jobs/", cluster);
    found.skip = strlen(prefix.s);
    rc = s->ops->list(s, prefix.s, note_object, &found, e);
    if (rc)
        return err_wrap(e, "list what the store has of cluster %s", cluster);
    *ret_contents = found.found;
    return 0;
}
