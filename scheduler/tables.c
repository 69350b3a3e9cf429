/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tables.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

static int make_windows(
    struct tables *t, const struct config *c, struct zones *zones, struct err *e)
{
    t->windows = mem_array(c->n_windows, sizeof(*t->windows));
    for (size_t i = 0; i < c->n_windows; i++) {
        const struct config_window *w = &c->windows[i];
        t->windows[i] = w->window;
        if (zones_load(zones, w->tz, &t->windows[i].zone, e) != 0)
            return err_wrap(e, "windows.%s.tz", w->window.name);
    }
    return 0;
}

/* Call after make_windows. */
static int make_budgets(
    struct tables *t, const struct config *c, struct zones *zones, struct err *e)
{
    t->budgets = mem_array(c->n_budgets, sizeof(*t->budgets));
    for (size_t i = 0; i < c->n_budgets; i++) {
        const struct config_budget *b = &c->budgets[i];
        t->budgets[i] = b->options;
        if (zones_load(zones, b->tz, &t->budgets[i].zone, e) != 0)
            return err_wrap(e, "budgets.%s.tz", b->options.name);
        for (size_t k = 0; k < c->n_windows; k++)
            if (str_eq(t->windows[k].name, b->window))
                t->budgets[i].window = &t->windows[k];
    }
    return 0;
}

static int make_digest(struct tables *t, const struct config *c, struct zones *zones, struct err *e)
{
    t->digest = c->digest.options;
    if (zones_load(zones, c->digest.tz, &t->digest.zone, e) != 0)
        return err_wrap(e, "digest.tz");
    return 0;
}

int tables_create(
    const struct config *c, struct zones *zones, struct tables **ret_tables, struct err *e)
{
    struct tables *t = mem_alloc(sizeof(*t));
    int rc = make_windows(t, c, zones, e);
    if (rc == 0)
        rc = make_budgets(t, c, zones, e);
    if (rc == 0)
        rc = make_digest(t, c, zones, e);
    if (rc != 0) {
        tables_destroy(t);
        return rc;
    }
    t->hooks = mem_array(c->notify.n_hooks, sizeof(*t->hooks));
    for (size_t i = 0; i < c->notify.n_hooks; i++)
        t->hooks[i] = c->notify.hooks[i];
    t->other.to = (struct model_tables){.windows = t->windows,
        .n_windows = c->n_windows,
        .calendars = c->calendars,
        .n_calendars = c->n_calendars,
        .hooks = t->hooks,
        .n_hooks = c->notify.n_hooks,
        .licences = c->licences,
        .n_licences = c->n_licences,
        .budgets = t->budgets,
        .n_budgets = c->n_budgets,
        .racks = c->racks,
        .n_racks = c->n_racks,
        .digest = c->digest.is_set ? &t->digest : NULL,
        .anomalies = {.n_mails = c->spend.n_mails, .to_users = c->spend.to_users}};
    *ret_tables = t;
    return 0;
}

static int add_labels(void *ctx, int64_t job, const char *labels_json)
{
    struct tables *t = ctx;
    size_t n = t->other.n_labels++;
    if ((n & (n - 1)) == 0) /* doubles */
        t->labels = mem_resize(t->labels, n ? 2 * n : 1, sizeof(*t->labels));
    t->labels[n] = (struct job_labels_text){.job = job, .json = mem_strdup(labels_json)};
    return 0;
}

int tables_read_labels(struct tables *t, struct db_reader *r, struct err *e)
{
    int rc = db_read_live_labels(r, add_labels, t, e);
    t->other.labels = t->labels;
    return rc;
}

void tables_destroy(struct tables *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->other.n_labels; i++)
        free(t->labels[i].json);
    free(t->labels);
    free(t->hooks);
    free(t->budgets);
    free(t->windows);
    free(t);
}
