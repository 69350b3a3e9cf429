/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/events?tail=N: the newest events, or those before one: of the cluster, of a node, of
 * a machine, of some kinds.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define SHOWN(text) str_show((text), (char[STR_SHOW_MAX]){0})

struct recent {
    const struct api *api;
    const struct caller *viewer;
    json_t *events;
    int64_t last;
};

static int add_event(void *ctx, const struct history_row *h)
{
    struct recent *l = ctx;
    bool is_hidden = api_event_is_hidden(l->api, l->viewer, h);
    json_array_append_new(l->events, api_json_event(l->api->o.reader, h, is_hidden));
    l->last = h->id;
    return 0;
}

static bool is_kind(const char *word)
{
    size_t i = 0;
    while (history_kinds[i] && !str_eq(history_kinds[i], word))
        i++;
    return history_kinds[i] != NULL;
}

static int refuse_kind(const char *word, struct err *e)
{
    struct buf names = {0};
    str_list_names(&names, word, history_kinds);
    int rc = err_set(
        e, ERR_INVALID, "kind: there is no kind of event %s: %s", SHOWN(word), buf_str(&names));
    buf_deinit(&names);
    return rc;
}

/* Writes ",saved,lost," for "saved,lost"; nothing for NULL. */
static int read_kinds(const char *value, struct buf *out, struct err *e)
{
    char *copy = value ? mem_strdup(value) : NULL, *rest = copy, *word;
    int rc = 0;
    while (rc == 0 && (word = strsep(&rest, ","))) {
        if (is_kind(word))
            buf_printf(out, "%s%s,", out->len ? "" : ",", word);
        else
            rc = refuse_kind(word, e);
    }
    free(copy);
    return rc;
}

void api_recent_events(struct request *q)
{
    struct recent l = {.api = q->api, .viewer = &q->caller};
    struct recent_filter f = {0};
    struct buf kinds = {0};
    struct err e;
    int64_t limit, next = 0;
    if (!api_query_i64(q, "tail", 1, API_EVENTS_MAX, API_EVENTS_MAX, &limit) ||
        !api_query_i64(q, "before", 1, INT64_MAX, 0, &f.before) ||
        !api_query_i64(q, "node", 1, INT64_MAX, 0, &f.node) ||
        !api_query_i64(q, "instance", 1, INT64_MAX, 0, &f.instance))
        return;
    f.limit = (int32_t)limit;
    l.events = json_array();
    int rc = read_kinds(http_request_query(q->x, "kind"), &kinds, &e);
    if (rc == 0) {
        f.kinds = buf_str(&kinds);
        rc = db_read_recent_history(q->api->o.reader, &f, add_event, &l, &next, &e);
    }
    buf_deinit(&kinds);
    if (rc == 0) {
        api_reply_json(q->x, 200,
            json_pack("{s:o,s:I,s:o}", "events", l.events, "last", (json_int_t)l.last, "next",
                api_json_opt(next, 0)));
        return;
    }
    json_decref(l.events);
    http_reply_err(q->x, &e);
}
