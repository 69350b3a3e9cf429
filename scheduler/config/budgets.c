/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/budgets.h"

#include "scheduler/config/readers.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/notify_address.h"
#include <stdlib.h>
#include <string.h>

static void opt_name(struct yaml_reader *r, const char *key, char out[CORE_NAME_MAX])
{
    const char *text = yaml_opt_str(r, key, CORE_NAME_MAX - 1, "");
    str_copy(out, CORE_NAME_MAX, text);
}

static void read_labels(struct yaml_reader *outer, struct budget_options *o)
{
    const struct yaml_node *map = config_opt_entries(outer, "labels", BUDGET_LABELS_MAX);
    for (size_t i = 0; map && i < map->n_items && outer->rc == 0; i++) {
        const struct yaml_node *item = map->items[i];
        struct budget_label *l = &o->labels[o->n_labels++];
        if (config_is_named(outer, item, "a label", CORE_NAME_MAX - 1) &&
            (item->type != YAML_SCALAR || strlen(item->text) >= sizeof(l->value)))
            yaml_reader_fail(outer, item, "labels: expected the label's value, at most %zu bytes",
                sizeof(l->value) - 1);
        if (outer->rc != 0)
            return;
        STR_COPY(l->name, item->key);
        STR_COPY(l->value, item->text);
    }
}

static void read_match(struct yaml_reader *outer, struct budget_options *o)
{
    const struct yaml_node *map = yaml_opt_map(outer, "match");
    struct yaml_reader r;
    if (!map || outer->rc != 0)
        return;
    yaml_reader_init(&r, outer->file, map, outer->e);
    opt_name(&r, "team", o->team);
    opt_name(&r, "user", o->user);
    opt_name(&r, "pool", o->pool);
    opt_name(&r, "job", o->job);
    read_labels(&r, o);
    yaml_reader_finish_in(outer, &r);
}

/* Reads the cap: exactly one of the four keys is required. */
static void read_cap(struct yaml_reader *r, struct budget_options *o)
{
    static const char *const keys[] = {
        "usd_per_hour", "usd_per_day", "usd_per_month", "usd_per_window"};
    int n = 0;
    for (int k = 0; k < 4; k++) {
        const struct yaml_node *node = yaml_opt(r, keys[k]);
        int64_t uusd = yaml_opt_uusd(r, keys[k], 0);
        if (!node || r->rc != 0)
            continue;
        if (uusd <= 0 || uusd > BUDGET_USD_MAX * 1000000)
            yaml_reader_fail(
                r, node, "expected more than 0 and at most %lld dollars", BUDGET_USD_MAX);
        else if (n++ > 0)
            yaml_reader_fail(
                r, node, "a budget is of one period: there is %s already", keys[o->period]);
        o->period = (enum budget_period)k;
        o->cap_uusd = uusd;
    }
    if (r->rc == 0 && n == 0)
        yaml_reader_fail(
            r, NULL, "a budget needs usd_per_hour, usd_per_day, usd_per_month or usd_per_window");
}

static void read_window(struct yaml_reader *r, const struct config_window *windows,
    size_t n_windows, struct config_budget *b)
{
    const struct yaml_node *node = yaml_opt(r, "window");
    const char *name = yaml_opt_str(r, "window", WINDOW_NAME_MAX - 1, "");
    const char *names[CONFIG_WINDOWS_MAX + 1] = {NULL};
    char shown[STR_SHOW_MAX];
    bool found = false;
    for (size_t k = 0; k < n_windows; k++) {
        names[k] = windows[k].window.name;
        found |= str_eq(names[k], name);
    }
    if (r->rc == 0 && !node != (b->options.period != BUDGET_WINDOW))
        yaml_reader_fail(r, node, "usd_per_window goes with window: the name of one of windows:");
    if (r->rc == 0 && node && !found) {
        const char *near = str_nearest(name, names);
        yaml_reader_fail(r, node, "there is no window %s%s%s%s", str_show(name, shown),
            near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    STR_COPY(b->window, name);
}

static void read_alerts(struct yaml_reader *r, struct budget_options *o)
{
    static const int32_t usual[] = {50, 80, 100};
    const struct yaml_node *seq = yaml_opt_seq(r, "alert_at", BUDGET_ALERTS_MAX);
    for (size_t k = 0; !seq && k < 3; k++)
        o->alert_pct[o->n_alerts++] = usual[k];
    for (size_t k = 0; seq && k < seq->n_items && r->rc == 0; k++) {
        int64_t pct = 0;
        struct err why;
        int32_t last = o->n_alerts ? o->alert_pct[o->n_alerts - 1] : 0;
        if (seq->items[k]->type != YAML_SCALAR ||
            str_to_i64(seq->items[k]->text, 1, 1000, "a part", &pct, &why) != 0 || pct <= last)
            yaml_reader_fail(r, seq->items[k],
                "alert_at: expected percents from 1 to 1000, each more than the one before");
        else
            o->alert_pct[o->n_alerts++] = (int32_t)pct;
    }
}

static void read_mails(struct yaml_reader *r, struct config_budget *b)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "mail", BUDGET_MAILS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && r->rc == 0; k++) {
        const struct yaml_node *item = seq->items[k];
        struct err why;
        if (item->type != YAML_SCALAR)
            yaml_reader_fail(r, item, "mail: expected an address");
        else if (notify_check_address(item->text, &why) != 0)
            yaml_reader_fail(r, item, "mail: %s", why.text);
        else
            b->mails[b->options.n_mails++] = mem_strdup(item->text);
    }
}

static void read_budget(struct yaml_reader *root, const struct yaml_node *node,
    const struct config_window *windows, size_t n_windows, struct config_budget *b)
{
    struct yaml_reader r;
    yaml_reader_init(&r, root->file, node, root->e);
    config_is_named(&r, node, "a budget", CORE_NAME_MAX - 1);
    STR_COPY(b->options.name, node->key);
    read_match(&r, &b->options);
    read_cap(&r, &b->options);
    read_window(&r, windows, n_windows, b);
    b->options.at_limit =
        (enum budget_action)yaml_opt_enum(&r, "at_limit", budget_action_names, BUDGET_ALERT);
    read_alerts(&r, &b->options);
    read_mails(&r, b);
    const struct yaml_node *tz = config_opt_zone(&r, b->tz);
    if (r.rc == 0 && tz && (b->options.period == BUDGET_HOUR || b->options.period == BUDGET_WINDOW))
        yaml_reader_fail(&r, tz, "%s",
            b->options.period == BUDGET_HOUR ? "hours are those of UTC" : "its window has one");
    yaml_reader_finish_in(root, &r);
}

void config_read_budgets(struct yaml_reader *root, const struct config_window *windows,
    size_t n_windows, struct config_budget **ret_budgets, size_t *ret_n)
{
    const struct yaml_node *map = config_opt_entries(root, "budgets", BUDGETS_MAX);
    *ret_budgets = NULL;
    *ret_n = 0;
    if (!map)
        return;
    *ret_budgets = mem_array(map->n_items, sizeof(**ret_budgets));
    for (size_t k = 0; k < map->n_items && root->rc == 0; k++)
        read_budget(root, map->items[k], windows, n_windows, &(*ret_budgets)[(*ret_n)++]);
}

void config_budgets_free(struct config_budget *budgets, size_t n)
{
    for (size_t k = 0; k < n; k++)
        for (int i = 0; i < BUDGET_MAILS_MAX; i++)
            free(budgets[k].mails[i]);
    free(budgets);
}
