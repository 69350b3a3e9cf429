/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/queue/calendars.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/cron_days.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 8

static const struct calendar *configured(const struct model *m, const char *name)
{
    for (size_t k = 0; k < m->options.tables.n_calendars; k++)
        if (str_eq(m->options.tables.calendars[k].name, name))
            return &m->options.tables.calendars[k];
    return NULL;
}

const struct stored_calendar *core_stored_calendar(const struct model *m, const char *name)
{
    return smap_get(&m->queue.calendars, name);
}

const struct calendar *core_calendar(const struct model *m, const char *name)
{
    const struct calendar *c = configured(m, name);
    const struct stored_calendar *s = c ? NULL : core_stored_calendar(m, name);
    return s ? &s->calendar : c;
}

const struct stored_calendar *core_next_calendar(const struct model *m, size_t *pos)
{
    const char *name;
    return smap_next(&m->queue.calendars, pos, &name);
}

const struct calendar *core_configured_calendar(const struct model *m, size_t i)
{
    return i < m->options.tables.n_calendars ? &m->options.tables.calendars[i] : NULL;
}

static bool names(const struct cron_entry *c, const char *calendar)
{
    return str_eq(c->row.skip_on, calendar) || str_eq(c->row.only_on, calendar);
}

int64_t core_calendar_crons(const struct model *m, const char *name)
{
    const struct cron_entry *c;
    int64_t n = 0;
    for (size_t pos = 0; (c = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;)
        n += names(c, name);
    return n;
}

/* ---- set ---- */

static int check_set(const struct model *m, const struct calendar_row *r, struct err *e)
{
    int rc = name_check(r->name, CALENDAR_NAME_MAX - 1, "a calendar's name", e);
    if (rc == 0 && configured(m, r->name))
        rc = err_set(e, ERR_CONFLICT,
            "calendar %s was not set, because belayd's configuration has one of this name, which "
            "decides: change it there, or choose another name",
            r->name);
    if (rc == 0 && !core_stored_calendar(m, r->name) &&
        smap_size(&m->queue.calendars) == CALENDARS_MAX)
        rc = err_set(e, ERR_CONFLICT,
            "there are %d calendars, which is the maximum: remove one (belay calendar remove)",
            CALENDARS_MAX);
    return rc;
}

static struct calendar_row copy(const struct calendar_row *r)
{
    struct calendar_row row = *r;
    row.days = r->days ? mem_strdup(r->days) : NULL;
    return row;
}

/* Takes the days of c. */
static struct stored_calendar *put(
    struct model *m, const struct calendar_row *r, const struct calendar *c)
{
    struct stored_calendar *s = smap_get(&m->queue.calendars, r->name);
    if (!s) {
        s = mem_alloc(sizeof *s);
        *s = (struct stored_calendar){0};
        smap_put(&m->queue.calendars, r->name, s);
    }
    free(s->row.days);
    free(s->calendar.days);
    s->row = copy(r);
    s->calendar = *c;
    STR_COPY(s->calendar.name, r->name);
    return s;
}

int apply_calendar_set(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct calendar_row *r = ev->calendar;
    struct calendar c = {0};
    struct buf days = {0};
    int rc = check_set(m, r, e);
    if (rc == 0)
        rc = calendar_read_list(r->days, &c, e);
    if (rc != 0)
        return rc;
    calendar_normalize(&c);
    calendar_print_list(&c, &days);
    struct calendar_row row = *r;
    row.days = days.data;
    row.set_at = ev->now.wall;
    row.is_removed = false;
    *ADD_ROW(m, calendars) = copy(&put(m, &row, &c)->row);
    buf_deinit(&days);
    crons_renew_calendars(m);
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}

/* ---- remove ---- */

/* ERR_CONFLICT names the entries that need it. */
static int check_unused(const struct model *m, const char *name, struct err *e)
{
    char who[ERR_TEXT_MAX / 2] = "", more[40] = "";
    const struct cron_entry *c;
    int64_t n = 0;
    for (size_t pos = 0; (c = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;) {
        size_t used = strlen(who);
        if (names(c, name) && n++ < NAMED_MAX)
            snprintf(who + used, sizeof who - used, "%s%.40s", used ? ", " : "", c->row.name);
    }
    if (n > NAMED_MAX)
        snprintf(more, sizeof more, " and %lld more", (long long)n - NAMED_MAX);
    return n == 0 ? 0
                  : err_set(e, ERR_CONFLICT,
                        "calendar %s was not removed, because cron entries name it: %s%s; edit "
                        "them first (belay cron edit --skip-on, --only-on)",
                        name, who, more);
}

int apply_calendar_remove(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const char *name = ev->calendar->name;
    struct stored_calendar *s = smap_get(&m->queue.calendars, name);
    bool is_configured = configured(m, name) != NULL;
    if (!s && is_configured)
        return err_set(e, ERR_CONFLICT,
            "calendar %.64s is one of belayd's configuration: remove it there", name);
    if (!s)
        return err_set(
            e, ERR_NOT_FOUND, "there is no calendar %.64s (belay calendar lists them)", name);
    int rc = is_configured ? 0 : check_unused(m, name, e);
    if (rc != 0)
        return rc;
    struct calendar_row *row = ADD_ROW(m, calendars);
    *row = s->row; /* takes its days */
    row->is_removed = true;
    smap_remove(&m->queue.calendars, row->name);
    free(s->calendar.days);
    free(s);
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}

/* ---- load ---- */

int calendar_load(struct model *m, const struct calendar_row *r, struct err *e)
{
    struct calendar c = {0};
    struct err why;
    if (core_stored_calendar(m, r->name) || !r->days || calendar_read_list(r->days, &c, &why) != 0)
        return err_set(
            e, ERR_CORRUPT, "stored calendar %.64s comes twice, or has no days", r->name);
    put(m, r, &c);
    return 0;
}

void calendars_destroy_all(struct model *m)
{
    const char *name;
    struct stored_calendar *s;
    for (size_t pos = 0; (s = smap_next(&m->queue.calendars, &pos, &name)) != NULL;) {
        free(s->row.days);
        free(s->calendar.days);
        free(s);
    }
    smap_deinit(&m->queue.calendars);
}
