/* SPDX-License-Identifier: Apache-2.0
 *
 * See timeline.h. A row begins where the attempt before it ended. A character shows what the job
 * did in the middle of its part of the time; saves and ends are drawn over that.
 */
#include "cli/timeline.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 12 /* the last attempts */

struct scale {
    int64_t from_ms, to_ms;
    int width;
};

static int column_of(const struct scale *s, int64_t at_ms)
{
    int64_t span = s->to_ms - s->from_ms;
    int column = (int)((double)(at_ms - s->from_ms) / (double)span * s->width);
    return column < 0 ? 0 : column >= s->width ? s->width - 1 : column;
}

static void fill(const struct scale *s, char *row, int64_t from_ms, int64_t to_ms, char c)
{
    for (int i = 0; i < s->width; i++) {
        double middle = (double)s->from_ms + (i + 0.5) * (double)(s->to_ms - s->from_ms) / s->width;
        if (middle >= (double)from_ms && middle < (double)to_ms)
            row[i] = c;
    }
}

static int64_t time_or(const json_t *o, const char *key, int64_t fallback_ms)
{
    struct wall at = cli_time(o, key);
    return wall_is_set(at) ? at.ms : fallback_ms;
}

static char end_mark(const char *end)
{
    if (str_eq(end, "succeeded"))
        return '*';
    if (str_eq(end, "reclaimed") || str_eq(end, "node-lost"))
        return 'x';
    return '!';
}

/* Saves of this attempt whose checkpoints are kept. */
static void mark_saves(const struct scale *s, char *row, const json_t *checkpoints, int64_t attempt)
{
    size_t i;
    json_t *c;
    json_array_foreach((json_t *)(uintptr_t)checkpoints, i, c)
    {
        struct wall at = cli_time(c, "saved_at");
        if (cli_int(c, "attempt", 0) == attempt && wall_is_set(at) && at.ms >= s->from_ms)
            row[column_of(s, at.ms)] = 's';
    }
}

/* Draws the attempt; the job was free since `free_ms`. Returns when the attempt ended, or now. */
static int64_t draw(
    const struct scale *s, char *row, const json_t *a, const json_t *v, int64_t free_ms)
{
    const json_t *restart = json_object_get(a, "restart");
    const int64_t assigned = time_or(a, "assigned_at", s->to_ms),
                  started = time_or(a, "started_at", s->to_ms),
                  ended = time_or(a, "ended_at", s->to_ms),
                  boot = cli_int(restart, "launch_ms", 0) + cli_int(restart, "boot_ms", 0) +
                         cli_int(restart, "agent_ms", 0) + cli_int(restart, "place_ms", 0);
    memset(row, ' ', (size_t)s->width);
    fill(s, row, free_ms, assigned, '.');
    fill(s, row, assigned - boot > free_ms ? assigned - boot : free_ms, assigned, 'b');
    fill(s, row, assigned, started < ended ? started : ended, 'r');
    fill(s, row, started, ended, '=');
    mark_saves(s, row, json_object_get(v, "checkpoints"), cli_int(a, "attempt", 0));
    if (json_is_string(json_object_get(a, "ended_at")))
        row[column_of(s, ended)] = end_mark(cli_text(a, "end"));
    return ended;
}

/* Rank 0 of each attempt, oldest first. Borrowed entries; the caller frees the list. */
static const json_t **attempts_of(const json_t *v, size_t *ret_n)
{
    const json_t *all = json_object_get(v, "attempts");
    const json_t **list = mem_array(json_array_size(all) + 1, sizeof(*list));
    size_t i, n = 0;
    json_t *a;
    json_array_foreach((json_t *)(uintptr_t)all, i, a)
    {
        if (cli_int(a, "rank", 0) == 0)
            list[n++] = a;
    }
    *ret_n = n;
    return list;
}

void timeline_print(const json_t *v, int width)
{
    const json_t *job = json_object_get(v, "job");
    const int64_t now = clock_wall(&clock_system).ms;
    size_t n;
    const json_t **list = attempts_of(v, &n);
    const size_t first = n > ROWS_MAX ? n - ROWS_MAX : 0;
    int64_t free_ms =
        first > 0 ? time_or(list[first - 1], "ended_at", now) : time_or(job, "submitted_at", now);
    const struct scale s = {free_ms, time_or(job, "ended_at", now), width};
    if (n > 0 && s.to_ms > s.from_ms) {
        char from[CLI_LOCAL_MAX], to[CLI_LOCAL_MAX], each[32];
        char *row = mem_alloc((size_t)width + 1);
        printf("timeline      %s to %s, a character is %s\n",
            cli_local((struct wall){s.from_ms}, true, from),
            cli_local((struct wall){s.to_ms}, true, to),
            cli_duration((s.to_ms - s.from_ms) / width, each, sizeof(each)));
        for (size_t i = first; i < n; i++) {
            free_ms = draw(&s, row, list[i], v, free_ms);
            printf("%4lld          %s\n", (long long)cli_int(list[i], "attempt", 0), row);
        }
        puts("              . waiting  b booting  r restoring  = running  s saved  x machine lost  "
             "* done  ! ended otherwise");
        free(row);
    }
    free(list);
}
