/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for calendars of cron entries (queue/calendars.h).
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/queue/calendars.h"
#include <stdlib.h>
#include <string.h>

/* ---- showing ---- */

/* stored: NULL for a calendar of the configuration. */
static json_t *calendar_json(
    const struct model *m, const struct calendar *c, const struct stored_calendar *stored)
{
    json_t *days = json_array();
    char text[CALENDAR_TEXT_MAX];
    int64_t n = 0;
    for (size_t k = 0; k < c->n; k++) {
        calendar_format_days(&c->days[k], text);
        json_array_append_new(days, json_string(text));
        n += c->days[k].last - c->days[k].first + 1;
    }
    bool hides = !stored && core_stored_calendar(m, c->name);
    return json_pack("{s:o,s:s,s:b,s:o,s:I,s:I,s:o,s:o}", "name", json_text(c->name), "source",
        stored ? "stored" : "configuration", "hides_stored", hides, "days", days, "n_days",
        (json_int_t)n, "crons", (json_int_t)core_calendar_crons(m, c->name), "set_by",
        api_json_opt_text(stored ? stored->row.by : ""), "set_at",
        api_json_time(stored ? stored->row.set_at : WALL_NONE));
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct stored_calendar *const *)a)->row.name,
        (*(const struct stored_calendar *const *)b)->row.name);
}

static void reply_calendars(const struct api *api, struct http_exchange *x,
    const struct caller *viewer, const struct model *m, int64_t arg)
{
    const struct stored_calendar *s, *stored[CALENDARS_MAX];
    const struct calendar *c;
    size_t n = 0;
    json_t *rows = json_array();
    (void)api, (void)viewer, (void)arg;
    for (size_t k = 0; (c = core_configured_calendar(m, k)) != NULL; k++)
        json_array_append_new(rows, calendar_json(m, c, NULL));
    for (size_t pos = 0; n < CALENDARS_MAX && (s = core_next_calendar(m, &pos)) != NULL;)
        if (core_calendar(m, s->row.name) == &s->calendar)
            stored[n++] = s;
    if (n > 0)
        qsort(stored, n, sizeof(stored[0]), by_name);
    for (size_t k = 0; k < n; k++)
        json_array_append_new(rows, calendar_json(m, &stored[k]->calendar, stored[k]));
    api_reply_json(x, 200, json_pack("{s:o}", "calendars", rows));
}

void api_calendars_list(struct request *q)
{
    api_read_model(q, reply_calendars, 0);
}

/* ---- changing ---- */

struct change {
    struct api *api;
    struct deferred_reply *deferred;
    struct calendar_row row;
};

static void change_free(struct change *c)
{
    free(c->row.days);
    free(c);
}

static int apply(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    const struct change *c = ctx;
    struct event ev = {
        .type = c->row.is_removed ? EV_CALENDAR_REMOVE : EV_CALENDAR_SET, .calendar = &c->row};
    return tick_apply(t, &ev, ret_id, e);
}

/* Reads the model, all of which is committed now. */
static void on_changed(void *ctx, const struct err *e, int64_t id)
{
    struct change *c = ctx;
    const struct model *m = tick_model(c->api->o.tick);
    const struct stored_calendar *s = e ? NULL : core_stored_calendar(m, c->row.name);
    struct http_exchange *x = deferred_reply_take(c->deferred);
    (void)id;
    if (x && e)
        http_reply_err(x, e);
    else if (x && c->row.is_removed)
        api_reply_json(x, 200, json_pack("{s:o}", "name", json_text(c->row.name)));
    else if (x && !s)
        api_reply_failure(x, ERR_NOT_FOUND, "calendar %s was removed meanwhile", c->row.name);
    else if (x)
        api_reply_json(x, 200, calendar_json(m, &s->calendar, s));
    change_free(c);
}

/* The list of days as text. */
static void read_days(struct json_reader *r, struct calendar_row *row)
{
    const json_t *list = json_req_array(r, "days", CALENDAR_DAYS_MAX), *item;
    struct buf text = {0};
    struct err why;
    size_t i;
    json_array_foreach(list, i, item)
    {
        struct calendar_days unused;
        const char *day = json_string_value(item);
        if (calendar_parse(day ? day : "", &unused, &why) != 0) {
            json_reader_fail(r, "days", "%s", why.text);
            break;
        }
        buf_printf(&text, "%s%s", i > 0 ? "," : "", day);
    }
    if (r->rc == 0 && text.len == 0)
        json_reader_fail(r, "days", "expected 1 to %d days or ranges", CALENDAR_DAYS_MAX);
    row->days = buf_take(&text);
}

static void change(struct request *q, bool removes)
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return;
    struct change *c = mem_alloc(sizeof(*c));
    *c = (struct change){.api = q->api, .row.is_removed = removes};
    STR_COPY(c->row.by, q->caller.user);
    json_reader_init(&r, body, "calendar", &e);
    json_req_strcpy(&r, "name", c->row.name, sizeof(c->row.name));
    if (!removes)
        read_days(&r, &c->row);
    int rc = json_reader_finish(&r);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    /* Of the whole cluster: a token of one pool does not reach it. */
    if (rc != 0 || !api_may(q, RIGHT_OPERATE, &(struct access_object){0}, "calendars")) {
        change_free(c);
        return;
    }
    if (q->call)
        STR_COPY(q->call->row.object, c->row.name);
    c->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, apply, on_changed, c);
}

void api_calendars_set(struct request *q)
{
    change(q, false);
}

void api_calendars_remove(struct request *q)
{
    change(q, true);
}
