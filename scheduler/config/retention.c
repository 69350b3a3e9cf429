/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/retention.h"

#include "base/str.h"
#include "scheduler/config/readers.h"

#define AGE_MAX_MS (36500 * DAY_MS)
#define DAYS_MIN_MS (62 * DAY_MS) /* the sums of two whole months */

/* A duration, or "forever", which is 0. */
static int64_t opt_age(struct yaml_reader *r, const char *key, int64_t least_ms, int64_t usual_ms)
{
    const struct yaml_node *node = yaml_opt(r, key);
    if (node && node->type == YAML_SCALAR && str_eq(node->text, "forever"))
        return 0;
    return config_opt_time_in(r, key, least_ms, AGE_MAX_MS, usual_ms);
}

void config_read_retention(struct yaml_reader *root, struct config_retention *ret_config)
{
    const struct yaml_node *node = yaml_opt(root, "retention");
    struct config_retention *c = ret_config;
    struct yaml_reader r;
    *c = (struct config_retention){.checkpoints_ms = 7 * DAY_MS,
        .jobs_ms = 400 * DAY_MS,
        .logs_ms = 400 * DAY_MS,
        .disk_ms = 30 * DAY_MS,
        .events_ms = 90 * DAY_MS,
        .audit_ms = 1100 * DAY_MS,
        .days_ms = 800 * DAY_MS};
    if (node && node->type == YAML_SCALAR)
        c->checkpoints_ms = config_opt_time(root, "retention", 0, c->checkpoints_ms);
    if (!node || node->type == YAML_SCALAR)
        return;
    const struct yaml_node *map = yaml_opt_map(root, "retention");
    if (root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    c->checkpoints_ms = config_opt_time(&r, "checkpoints", 0, c->checkpoints_ms);
    c->jobs_ms = opt_age(&r, "jobs", DAY_MS, c->jobs_ms);
    c->logs_ms = opt_age(&r, "logs", DAY_MS, c->jobs_ms);
    c->disk_ms = opt_age(&r, "logs_on_disk", DAY_MS, c->disk_ms);
    c->events_ms = opt_age(&r, "events", DAY_MS, c->events_ms);
    c->audit_ms = opt_age(&r, "audit_log", DAY_MS, c->audit_ms);
    c->days_ms = opt_age(&r, "daily_costs", DAYS_MIN_MS, c->days_ms);
    c->database_bytes = config_opt_bytes(&r, "database_max", "none");
    c->disk_bytes = config_opt_bytes(&r, "logs_on_disk_max", "none");
    c->store_bytes = config_opt_bytes(&r, "logs_in_store_max", "none");
    if (c->jobs_ms > 0 && (c->logs_ms == 0 || c->logs_ms > c->jobs_ms))
        yaml_reader_fail(&r, yaml_opt(&r, "logs"),
            "expected at most the age of `jobs`: the output of a job is deleted with it");
    yaml_reader_finish_in(root, &r);
}
