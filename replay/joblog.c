/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/joblog.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

static const char *own_text(struct joblog *l, const char *text)
{
    char *own = smap_get(&l->texts, text);
    if (!own) {
        own = mem_strdup(text);
        smap_put(&l->texts, own, own);
    }
    return own;
}

const char *joblog_text(struct joblog *l, const char *text, size_t n)
{
    char cut[CORE_NAME_MAX];
    if (n > sizeof cut - 1)
        n = str_cut(text, n, sizeof cut - 1);
    memcpy(cut, text, n);
    cut[n] = '\0';
    str_sanitize(cut, n);
    return own_text(l, cut);
}

void joblog_set_input(struct joblog *l, struct log_job *j, const struct input *in)
{
    const struct constraints x = {.input = *in};
    char text[CONSTRAINTS_TEXT_MAX];
    constraints_format(&x, text);
    j->constraints = text[0] ? own_text(l, text) : NULL;
}

struct log_job *joblog_add(struct joblog *l)
{
    if (l->n == JOBLOG_JOBS_MAX)
        return NULL;
    if ((l->n & (l->n - 1)) == 0)
        l->jobs = mem_resize(l->jobs, l->n ? 2 * l->n : 1, sizeof *l->jobs);
    const char *none = joblog_text(l, "", 0);
    l->jobs[l->n] = (struct log_job){.name = none,
        .user = none,
        .team = none,
        .pool = none,
        .submit = WALL_NONE,
        .finish_by = WALL_NONE,
        .need = {.cpus = 1},
        .nodes = 1,
        .save_ms = JOBLOG_UNKNOWN,
        .ckpt_bytes = JOBLOG_UNKNOWN};
    return &l->jobs[l->n++];
}

struct indexed_job {
    struct log_job job;
    size_t at;
};

static int by_submit(const void *a, const void *b)
{
    const struct indexed_job *x = a, *y = b;
    if (x->job.submit.ms != y->job.submit.ms)
        return x->job.submit.ms < y->job.submit.ms ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

void joblog_sort(struct joblog *l)
{
    struct indexed_job *all = mem_array(l->n + 1, sizeof *all);
    for (size_t i = 0; i < l->n; i++)
        all[i] = (struct indexed_job){l->jobs[i], i};
    qsort(all, l->n, sizeof *all, by_submit);
    for (size_t i = 0; i < l->n; i++)
        l->jobs[i] = all[i].job;
    free(all);
}

void joblog_select(struct joblog *l, struct wall from, struct wall to)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        int64_t at = l->jobs[i].submit.ms;
        if ((!wall_is_set(from) || at >= from.ms) && (!wall_is_set(to) || at < to.ms))
            l->jobs[n++] = l->jobs[i];
    }
    l->n = n;
}

/* "1234.5": seconds since 1970. */
static bool read_seconds(const char *text, struct wall *ret_at)
{
    char *end;
    double s = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
    if (s < 0 || *end || s > 253402300799.0)
        return false;
    ret_at->ms = (int64_t)(s * 1000 + 0.5);
    return true;
}

int joblog_time(const char *text, struct wall *ret_at, struct err *e)
{
    char iso[40], shown[STR_SHOW_MAX];
    size_t n = strlen(text);
    if (n == 0 || strspn(text, "0123456789.") == n) {
        if (read_seconds(text, ret_at))
            return 0;
    } else if (n > 10 && n + 2 < sizeof iso) {
        STR_COPY(iso, text);
        if (iso[10] == ' ')
            iso[10] = 'T';
        if (strspn(iso + 11, "0123456789:.") == n - 11)
            memcpy(iso + n, "Z", 2);
        if (time_parse_iso(iso, ret_at, NULL) == 0)
            return 0;
    }
    return err_set(e, ERR_INVALID,
        "expected a time such as 2026-08-01T00:00:00Z, or seconds since 1970, found %s",
        str_show(text, shown));
}

static bool is_json(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < n && (text[i] == '{' || text[i] == '[');
}

int joblog_parse(
    const char *file, const char *text, size_t n, struct joblog *ret_log, struct err *e)
{
    struct joblog l = {0};
    int rc;
    if (n > JOBLOG_BYTES_MAX)
        return err_set(e, ERR_INVALID, "%s: a log of jobs may have at most %u MiB", file,
            JOBLOG_BYTES_MAX >> 20);
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* byte order mark */
        text += 3;
        n -= 3;
    }
    if (str_ends(file, ".swf"))
        rc = joblog_read_swf(file, text, n, &l, e);
    else if (is_json(text, n))
        rc = joblog_read_json(file, text, n, &l, e);
    else
        rc = joblog_read_csv(file, text, n, &l, e);
    if (rc == 0) {
        joblog_sort(&l);
        *ret_log = l;
    } else {
        joblog_deinit(&l);
    }
    return rc;
}

void joblog_deinit(struct joblog *l)
{
    size_t pos = 0;
    for (char *text; (text = smap_next(&l->texts, &pos, NULL));)
        free(text);
    smap_deinit(&l->texts);
    free(l->jobs);
    *l = (struct joblog){0};
}
