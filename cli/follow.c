/* SPDX-License-Identifier: Apache-2.0
 *
 * Following a job: its continuous log and its end.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 20000
#define CALL_MS (WAIT_MS + 30000)
#define RESTART_TRIES 60 /* one second each: belayd may be restarted meanwhile */

/* A call that is repeated while belayd restarts. *met: belayd has answered before; if not, one
 * failure is final. */
static int patient_call(
    struct client *c, const char *path, bool *met, struct client_reply *reply, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < RESTART_TRIES; i++) {
        rc = client_call(c, "GET", path, NULL, CALL_MS, reply, e);
        if (!*met || (rc != ERR_UNAVAILABLE && rc != ERR_IO && rc != ERR_TIMEOUT)) {
            *met = *met || rc == 0;
            return rc;
        }
        client_reply_deinit(reply);
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    return rc;
}

char *cli_log_path(int64_t id, const struct log_part *part, int64_t next, int64_t wait_ms)
{
    struct buf path = {0};
    char iso[TIME_ISO_MAX];
    buf_printf(&path, "/api/v1/jobs/%lld/logs?offset=%lld&rank=%lld&wait_ms=%lld", (long long)id,
        (long long)(next < 0 ? part->offset : next), (long long)part->rank, (long long)wait_ms);
    if (part->attempt > 0)
        buf_printf(&path, "&attempt=%lld", (long long)part->attempt);
    if (next < 0 && part->tail > 0)
        buf_printf(&path, "&tail=%lld", (long long)part->tail);
    if (next < 0 && wall_is_set(part->since)) {
        time_format_iso(part->since, iso);
        buf_printf(&path, "&since=%s", iso);
    }
    return buf_take(&path);
}

int cli_print_logs(
    struct client *c, int64_t id, const struct log_part *part, bool follow, struct err *e)
{
    bool met = false;
    int64_t next = -1;
    for (;;) {
        struct client_reply reply = {0};
        char *path = cli_log_path(id, part, next, follow ? WAIT_MS : 0);
        met = met && follow;
        int rc = patient_call(c, path, &met, &reply, e);
        free(path);
        if (rc != 0)
            return rc;
        size_t n = reply.body.len;
        bool end = reply.log_end || (!follow && n == 0);
        fwrite(buf_str(&reply.body), 1, n, stdout);
        end = fflush(stdout) != 0 || end; /* the reader has gone: main reports it */
        next = reply.log_next;
        client_reply_deinit(&reply);
        if (end)
            return 0;
    }
}

int cli_next_page(
    struct client *c, int64_t id, int64_t wait_ms, int64_t *after, json_t **ret_page, struct err *e)
{
    struct client_reply reply = {0};
    bool met = true; /* belayd has answered before: it accepted the job */
    const char *path = CLI_PATH("/api/v1/jobs/%lld/events?after=%lld&wait_ms=%lld", (long long)id,
        (long long)*after, (long long)wait_ms);
    int rc = patient_call(c, path, &met, &reply, e);
    if (rc == 0)
        rc = json_parse(buf_str(&reply.body), reply.body.len, 64u << 20, ret_page, e);
    client_reply_deinit(&reply);
    if (rc == 0)
        *after = cli_int(*ret_page, "last", *after);
    return rc;
}

int cli_next_events(
    struct client *c, int64_t id, int64_t *after, json_t **ret_events, struct err *e)
{
    json_t *page = NULL;
    int rc = cli_next_page(c, id, WAIT_MS, after, &page, e);
    if (rc == 0)
        *ret_events = json_incref(json_object_get(page, "events"));
    json_decref(page);
    return rc;
}

static int wait_for_end(struct client *c, int64_t id, struct err *e)
{
    int64_t after = 0;
    for (;;) {
        json_t *v = NULL;
        int rc = cli_next_page(c, id, WAIT_MS, &after, &v, e);
        if (rc != 0)
            return rc;
        bool ended = strcmp(cli_text(v, "state"), "ended") == 0 &&
                     json_array_size(json_object_get(v, "events")) == 0;
        json_decref(v);
        if (ended)
            return 0;
    }
}

int cli_wait_job(struct client *c, int64_t id, bool follow, int *ret_exit, struct err *e)
{
    json_t *v = NULL;
    const struct log_part all = {.since = WALL_NONE};
    int rc = follow ? cli_print_logs(c, id, &all, true, e) : 0;
    if (rc == 0)
        rc = wait_for_end(c, id, e);
    if (rc == 0)
        rc = client_json(c, "GET", CLI_PATH("/api/v1/jobs/%lld", (long long)id), NULL, &v, e);
    if (rc != 0)
        return rc;
    const json_t *job = json_object_get(v, "job");
    const char *end = cli_text(job, "end");
    *ret_exit = (int)cli_int(job, "exit_code", 1);
    if (strcmp(end, "succeeded") != 0 && *ret_exit == 0)
        *ret_exit = 1;
    const json_t *attempts = json_object_get(v, "attempts");
    const char *why = cli_text(json_array_get(attempts, json_array_size(attempts) - 1), "text");
    bool is_usual = strcmp(why, "-") == 0 || strncmp(why, "exit code", strlen("exit code")) == 0;
    if (strcmp(end, "succeeded") != 0 && (strcmp(end, "failed") != 0 || !is_usual))
        cli_error("job %s ended: %s%s%s", cli_text(job, "ref"), end, is_usual ? "" : ": ",
            is_usual ? "" : why);
    json_decref(v);
    return 0;
}
