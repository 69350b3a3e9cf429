/* SPDX-License-Identifier: Apache-2.0
 *
 * Which live jobs and cron entries other options would strand: those that name something that is
 * there now and then would not be. What names nothing that is there already waits anyway.
 */
#include "job/calendar.h"
#include "job/window.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/settings.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/queue/calendars.h"
#include "scheduler/core/queue/shares.h"

#include "base/str.h"
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 8

/* What a job or an entry names, and whether the model has it, and the settings will. */
struct thing {
    const char *what, *name, *instead;
    bool is_there, will_be_there;
};

/* Of one thing: who names it. */
struct stranded {
    struct thing thing;
    char who[ERR_TEXT_MAX / 2];
    size_t n;
};

/* An element of an array begins with its name. */
static_assert(offsetof(struct window, name) == 0 && offsetof(struct calendar, name) == 0,
    "has_name reads the name at the begin of an element");
static bool has_name(const void *array, size_t n, size_t element_bytes, const char *name)
{
    for (size_t k = 0; k < n; k++)
        if (str_eq((const char *)array + k * element_bytes, name))
            return true;
    return false;
}

static bool has_window(const struct window *v, size_t n, const char *name)
{
    return has_name(v, n, sizeof *v, name);
}

static bool has_calendar(
    const struct model *m, const struct calendar *v, size_t n, const char *name)
{
    return core_stored_calendar(m, name) || has_name(v, n, sizeof *v, name);
}

static bool suffices(const struct count *v, size_t n, const struct count *wanted)
{
    for (size_t k = 0; k < n; k++)
        if (str_eq(v[k].name, wanted->name))
            return v[k].n >= wanted->n;
    return false;
}

/* Counts one more who names the thing: the first thing that goes is reported, with all of them. */
static void look(struct stranded *s, const struct thing *t, const char *kind, const char *name)
{
    if (!t->name[0] || !t->is_there || t->will_be_there ||
        (s->n > 0 && !(str_eq(s->thing.what, t->what) && str_eq(s->thing.name, t->name))))
        return;
    s->thing = *t;
    size_t used = strlen(s->who);
    if (s->n++ < NAMED_MAX)
        snprintf(s->who + used, sizeof s->who - used, "%s%s %.40s", used ? ", " : "", kind, name);
}

static void look_at_row(const struct model *m, const struct model_settings *s,
    const struct job_row *r, const char *kind, const char *name, struct stranded *found)
{
    const struct settings_tables *t = s->tables;
    if (s->policy)
        look(found,
            &(struct thing){"QOS", r->spec.qos, "keep it, or end them first",
                policy_qos(model_policy(m), r->spec.qos), policy_qos(s->policy, r->spec.qos)},
            kind, name);
    if (t)
        look(found,
            &(struct thing){"window", r->spec.window, "keep it, or give them another (window=)",
                has_window(m->options.tables.windows, m->options.tables.n_windows, r->spec.window),
                has_window(t->to.windows, t->to.n_windows, r->spec.window)},
            kind, name);
}

static void look_at_licences(const struct model *m, const struct settings_tables *t,
    const struct constraints *x, const char *name, struct stranded *found)
{
    for (size_t i = 0; x && i < x->licences.n; i++) {
        const struct count *c = &x->licences.v[i];
        const struct licence *l = licence_named(m, c->name);
        look(found,
            &(struct thing){"what they need of licence", c->name, "keep as many, or end them first",
                l && l->what.n >= c->n, suffices(t->to.licences, t->to.n_licences, c)},
            "job", name);
    }
}

static void look_at_crons(
    const struct model *m, const struct model_settings *s, struct stranded *found)
{
    const struct settings_tables *t = s->tables;
    const struct cron_entry *c;
    for (size_t pos = 0; (c = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;) {
        const char *const calendars[] = {c->row.skip_on, c->row.only_on};
        look_at_row(m, s, &c->job, "cron entry", c->row.name, found);
        for (size_t i = 0; t && i < sizeof calendars / sizeof calendars[0]; i++)
            look(found,
                &(struct thing){"calendar", calendars[i], "keep it, or edit them first",
                    has_calendar(m, m->options.tables.calendars, m->options.tables.n_calendars,
                        calendars[i]),
                    has_calendar(m, t->to.calendars, t->to.n_calendars, calendars[i])},
                "cron entry", c->row.name);
    }
}

int core_check_settings(const struct model *m, const struct model_settings *s, struct err *e)
{
    struct stranded found = {0};
    int64_t *ids;
    if (!s->policy && !s->tables)
        return 0;
    size_t n = model_jobs_between(m, 1, INT64_MAX, &ids);
    for (size_t i = 0; i < n; i++) {
        const struct job *j = model_job(m, ids[i]);
        const struct job_ref ref = job_ref(&j->row);
        look_at_row(m, s, &j->row, "job", ref.s, &found);
        if (s->tables)
            look_at_licences(m, s->tables, j->shape->constraints, ref.s, &found);
    }
    free(ids);
    look_at_crons(m, s, &found);
    if (found.n == 0)
        return 0;
    char more[40] = "";
    if (found.n > NAMED_MAX)
        snprintf(more, sizeof more, " and %zu more", found.n - NAMED_MAX);
    return err_set(e, ERR_CONFLICT,
        "nothing was changed, because %s %.64s would be gone, and these need it: %s%s; %s",
        found.thing.what, found.thing.name, found.who, more, found.thing.instead);
}
