/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's route for budgets: what is spent, set aside and left, and when the next period begins.
 */
#include "scheduler/api/api_private.h"

#include "base/str.h"

static json_t *match_json(const struct budget_options *o)
{
    json_t *labels = json_object();
    for (size_t k = 0; k < o->n_labels; k++)
        json_object_set_new(labels, o->labels[k].name, json_text(o->labels[k].value));
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "team", api_json_opt_text(o->team), "user",
        api_json_opt_text(o->user), "pool", api_json_opt_text(o->pool), "job",
        api_json_opt_text(o->job), "labels", labels);
}

static json_t *budget_json(const struct budget_view *v)
{
    const struct budget_options *o = v->options;
    json_t *parts = json_array();
    int64_t left = o->cap_uusd - v->spent_uusd - v->reserved_uusd;
    for (size_t k = 0; k < o->n_alerts; k++)
        json_array_append_new(parts, json_integer(o->alert_pct[k]));
    json_t *b = json_pack("{s:o,s:o,s:s,s:o,s:o,s:s,s:o}", "name", json_text(o->name), "match",
        match_json(o), "period", budget_period_names[o->period], "window",
        o->window ? json_text(o->window->name) : json_null(), "zone",
        o->zone ? json_text(o->zone->name) : json_null(), "at_limit",
        budget_action_names[o->at_limit], "alert_at", parts);
    json_object_set_new(b, "state",
        json_string(!v->is_open    ? "outside"
                    : v->is_closed ? "used-up"
                                   : "open"));
    json_object_set_new(b, "since", api_json_time(v->since));
    json_object_set_new(b, "until", api_json_time(v->until));
    json_object_set_new(b, "cap_uusd", json_integer(o->cap_uusd));
    json_object_set_new(b, "spent_uusd", json_integer(v->spent_uusd));
    json_object_set_new(b, "aside_uusd", json_integer(v->reserved_uusd));
    json_object_set_new(b, "left_uusd", json_integer(left > 0 ? left : 0));
    json_object_set_new(b, "uusd_per_hour", json_integer(v->uusd_h));
    json_object_set_new(b, "jobs", json_integer(v->jobs));
    json_object_set_new(b, "told_percent", api_json_opt(v->notified_pct, 0));
    return b;
}

static void reply_budgets(const struct api *api, struct http_exchange *x,
    const struct caller *viewer, const struct model *m, int64_t arg)
{
    (void)viewer;
    const struct wall now = tick_now(api->o.tick).wall;
    json_t *rows = json_array();
    (void)arg;
    for (size_t k = 0; k < core_budgets(m); k++) {
        struct budget_view v;
        core_budget(m, k, now, &v);
        json_array_append_new(rows, budget_json(&v));
    }
    api_reply_json(x, 200, json_pack("{s:o}", "budgets", rows));
}

void api_budgets_list(struct request *q)
{
    api_read_model(q, reply_budgets, 0);
}
