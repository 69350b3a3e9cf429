/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/telemetry.h"

#include "scheduler/config/readers.h"

#define KEEP_MIN_MS 3600000LL
#define KEEP_MAX_MS (3650 * 86400000LL)
#define PERIOD_MAX_MS 86400000LL

static void read_diagnose(struct yaml_reader *root, struct config_telemetry *c)
{
    const struct yaml_node *map = yaml_opt_map(root, "diagnose");
    struct diagnose_limits *l = &c->diagnose;
    struct yaml_reader r;
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    c->over_ms = config_opt_time_in(&r, "over", 1000, PERIOD_MAX_MS, c->over_ms);
    l->least_ms = config_opt_time_in(&r, "least", 1000, PERIOD_MAX_MS, l->least_ms);
    l->cpu_idle = yaml_opt_i64(&r, "cpu_idle", 1, 100, l->cpu_idle);
    l->gpu_idle = yaml_opt_i64(&r, "gpu_idle", 1, 100, l->gpu_idle);
    l->blocked = yaml_opt_i64(&r, "blocked", 1, 100, l->blocked);
    l->stall = yaml_opt_i64(&r, "stall", 1, 100, l->stall);
    l->thread = yaml_opt_i64(&r, "thread", 1, 100, l->thread);
    l->link = yaml_opt_i64(&r, "link", 1, 100, l->link);
    l->network_mib_s = yaml_opt_i64(&r, "network_mib_s", 1, 1000000, l->network_mib_s);
    l->thermal = yaml_opt_i64(&r, "thermal", 1, 100, l->thermal);
    l->power = yaml_opt_i64(&r, "power", 1, 100, l->power);
    l->clock = yaml_opt_i64(&r, "clock", 1, 100, l->clock);
    l->faults_s = yaml_opt_i64(&r, "faults_s", 1, 1000000, l->faults_s);
    l->memory = yaml_opt_i64(&r, "memory", 1, 100, l->memory);
    l->swapped_kib_s = yaml_opt_i64(&r, "swapped_kib_s", 1, 100000000, l->swapped_kib_s);
    yaml_reader_finish_in(root, &r);
}

static void read_advise(struct yaml_reader *root, struct advise_limits *l)
{
    const struct yaml_node *map = yaml_opt_map(root, "advise");
    struct yaml_reader r;
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    l->idle_ms = config_opt_time_in(&r, "idle_for", 1000, PERIOD_MAX_MS, l->idle_ms);
    l->idle_busy = yaml_opt_i64(&r, "idle_busy", 1, 100, l->idle_busy);
    l->idle_memory = yaml_opt_i64(&r, "idle_memory", 0, 99, l->idle_memory);
    l->size_ms = config_opt_time_in(&r, "sizes_over", 1000, 30 * PERIOD_MAX_MS, l->size_ms);
    l->size_least_ms = config_opt_time_in(&r, "sizes_least", 1000, PERIOD_MAX_MS, l->size_least_ms);
    l->memory_far = yaml_opt_i64(&r, "memory_far", 1, 100, l->memory_far);
    l->memory_near = yaml_opt_i64(&r, "memory_near", 1, 100, l->memory_near);
    l->busy = yaml_opt_i64(&r, "busy", 1, 100, l->busy);
    l->gang_wait = yaml_opt_i64(&r, "gang_wait", 1, 100, l->gang_wait);
    l->collectives = yaml_opt_i64(&r, "collectives", 1, 100, l->collectives);
    yaml_reader_finish_in(root, &r);
}

void config_read_telemetry(struct yaml_reader *root, struct config_telemetry *ret_config)
{
    const struct yaml_node *map = yaml_opt_map(root, "telemetry");
    struct yaml_reader r;
    *ret_config = (struct config_telemetry){.keep_ms = {86400000, 7 * 86400000LL, 90 * 86400000LL},
        .throttled_ms = 5 * 60000,
        .forgotten_ms = 30 * PERIOD_MAX_MS,
        .over_ms = 15 * 60000,
        .diagnose = diagnose_usual,
        .advise = advise_usual};
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    ret_config->keep_ms[0] =
        config_opt_time_in(&r, "minutes", KEEP_MIN_MS, KEEP_MAX_MS, ret_config->keep_ms[0]);
    ret_config->keep_ms[1] =
        config_opt_time_in(&r, "ten_minutes", KEEP_MIN_MS, KEEP_MAX_MS, ret_config->keep_ms[1]);
    ret_config->keep_ms[2] =
        config_opt_time_in(&r, "hours", KEEP_MIN_MS, KEEP_MAX_MS, ret_config->keep_ms[2]);
    ret_config->throttled_ms =
        config_opt_time_in(&r, "throttled_for", 0, PERIOD_MAX_MS, ret_config->throttled_ms);
    ret_config->forgotten_ms = config_opt_time_in(
        &r, "forgotten_for", 1000, 3650 * PERIOD_MAX_MS, ret_config->forgotten_ms);
    read_diagnose(&r, ret_config);
    read_advise(&r, &ret_config->advise);
    yaml_reader_finish_in(root, &r);
}
