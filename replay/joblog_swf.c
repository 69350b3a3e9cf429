/* SPDX-License-Identifier: Apache-2.0
 *
 * The Standard Workload Format, version 2 (Chapin et al. 1999; the Parallel Workloads Archive):
 * eighteen numbers per line, -1 for unknown; lines that begin with ';' are comments, of which
 * "UnixStartTime: N" gives the time of second 0.
 *
 * Processors are counted for all nodes together, and the format does not give the number of nodes:
 * see log_job.is_spread. Memory is in KiB per processor. Users and groups are numbers, and get
 * names: "user7", "group2".
 */
#include "replay/joblog.h"

#include "base/mem.h"
#include "base/str.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096
#define FIELDS 18
#define PROCESSORS_MAX 10000000
#define START_TIME "UnixStartTime:"

/* Column indices, from 0. */
enum {
    SWF_SUBMIT = 1,
    SWF_RUN = 3,
    SWF_USED_PROCS = 4,
    SWF_MEMORY = 6,
    SWF_PROCS = 7,
    SWF_LIMIT = 8,
    SWF_ASKED_MEMORY = 9,
    SWF_USER = 11,
    SWF_GROUP = 12
};

struct swf {
    const char *file;
    int line;
    int64_t start_s;
    struct joblog *log;
    struct err *e;
};

static int fail(const struct swf *r, size_t field, const char *expected)
{
    return err_set(
        r->e, ERR_INVALID, "%s:%d: field %zu: expected %s", r->file, r->line, field + 1, expected);
}

static int read_comment(struct swf *r, const char *line)
{
    const char *at = strstr(line, START_TIME);
    if (!at)
        return 0;
    at += strlen(START_TIME);
    long long s = strtoll(at, NULL, 10);
    if (s < 0 || s > 4102444800)
        return err_set(r->e, ERR_INVALID, "%s:%d: " START_TIME " expected seconds since 1970",
            r->file, r->line);
    r->start_s = s;
    return 0;
}

static int read_numbers(const struct swf *r, const char *line, double v[FIELDS])
{
    size_t n = 0;
    for (; n < FIELDS; n++) {
        char *end;
        v[n] = strtod(line, &end);
        if (end == line)
            break;
        if (!isfinite(v[n]) || (*end && !strchr(" \t", *end)))
            return fail(r, n, "a number");
        line = end;
    }
    line += strspn(line, " \t");
    if (n != FIELDS || *line)
        return err_set(r->e, ERR_INVALID, "%s:%d: expected %d numbers, found %s", r->file, r->line,
            FIELDS, n == FIELDS ? "more" : "fewer, or other text");
    return 0;
}

static const char *name_of(struct joblog *l, const char *what, double number)
{
    char name[64];
    if (number < 0)
        return joblog_text(l, "", 0);
    snprintf(name, sizeof name, "%s%.0f", what, number);
    return joblog_text(l, name, strlen(name));
}

static int read_job(struct swf *r, const char *line)
{
    double v[FIELDS];
    int rc = read_numbers(r, line, v);
    if (rc != 0)
        return rc;
    double procs = v[SWF_PROCS] > 0 ? v[SWF_PROCS] : v[SWF_USED_PROCS];
    double memory_kib = v[SWF_ASKED_MEMORY] > 0 ? v[SWF_ASKED_MEMORY] : v[SWF_MEMORY];
    if (!(v[SWF_SUBMIT] >= 0 && v[SWF_SUBMIT] < 4e9))
        return fail(r, SWF_SUBMIT, "seconds from the start of the log, not negative");
    if (v[SWF_RUN] <= 0 || procs <= 0) {
        r->log->n_never_ran++;
        return 0;
    }
    if (v[SWF_RUN] * 1000 > (double)JOBLOG_RUN_MAX_MS)
        return fail(r, SWF_RUN, "at most 366 days, in seconds");
    if (procs > PROCESSORS_MAX)
        return fail(
            r, v[SWF_PROCS] > 0 ? SWF_PROCS : SWF_USED_PROCS, "at most 10000000 processors");
    if (memory_kib > 1e12)
        return fail(r, v[SWF_ASKED_MEMORY] > 0 ? SWF_ASKED_MEMORY : SWF_MEMORY, "at most 1e12 KiB");
    struct log_job *j = joblog_add(r->log);
    if (!j)
        return err_set(
            r->e, ERR_INVALID, "%s:%d: more than %d jobs", r->file, r->line, JOBLOG_JOBS_MAX);
    j->submit.ms = r->start_s * 1000 + llround(v[SWF_SUBMIT] * 1000);
    j->work_ms = llround(v[SWF_RUN] * 1000) > 0 ? llround(v[SWF_RUN] * 1000) : 1;
    j->need.cpus = (int32_t)ceil(procs);
    j->need.memory_mib = memory_kib > 0 ? (int64_t)ceil(memory_kib * procs / 1024) : 0;
    j->is_spread = true;
    if (v[SWF_LIMIT] > 0 && v[SWF_LIMIT] * 1000 < (double)JOBLOG_RUN_MAX_MS)
        j->time_limit_ms = llround(v[SWF_LIMIT] * 1000);
    j->user = name_of(r->log, "user", v[SWF_USER]);
    j->team = name_of(r->log, "group", v[SWF_GROUP]);
    return 0;
}

int joblog_read_swf(const char *file, const char *text, size_t n, struct joblog *l, struct err *e)
{
    struct swf r = {.file = file, .log = l, .e = e};
    char *line = mem_alloc(LINE_MAX_BYTES);
    int rc = 0;
    for (const char *end = text + n; rc == 0 && text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((newline ? newline : end) - text);
        const char *from = text;
        r.line++;
        text += len + 1;
        while (len > 0 && strchr(" \t\r", from[len - 1]))
            len--;
        bool is_comment = len > 0 && from[0] == ';';
        if (is_comment && len >= LINE_MAX_BYTES)
            len = LINE_MAX_BYTES - 1;
        if (len >= LINE_MAX_BYTES || memchr(from, '\0', len)) {
            rc = err_set(e, ERR_INVALID, "%s:%d: expected a line of text of at most %d bytes", file,
                r.line, LINE_MAX_BYTES - 1);
            break;
        }
        memcpy(line, from, len);
        line[len] = '\0';
        if (is_comment)
            rc = read_comment(&r, line);
        else if (line[strspn(line, " \t")])
            rc = read_job(&r, line);
    }
    free(line);
    return rc;
}
