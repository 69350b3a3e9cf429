/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/telemetry.h"

#define KEEP_MIN_MS 3600000LL
#define KEEP_MAX_MS (3650 * 86400000LL)
#define PERIOD_MAX_MS 86400000LL

static int64_t opt_time(
    struct yaml_reader *r, const char *key, int64_t least_ms, int64_t most_ms, int64_t usual_ms)
{
    const struct yaml_node *node = yaml_opt(r, key);
    int64_t ms = yaml_opt_duration_ms(r, key, usual_ms);
    if (node && r->rc == 0 && (ms < least_ms || ms > most_ms))
        yaml_reader_fail(r, node, "expected a time from %llds to %llds, found \"%s\"",
            (long long)(least_ms / 1000), (long long)(most_ms / 1000), node->text);
    return ms;
}

static void read_diagnose(struct yaml_reader *root, struct config_telemetry *c)
{
    const struct yaml_node *map = yaml_opt_map(root, "diagnose");
    struct diagnose_limits *l = &c->diagnose;
    struct yaml_reader r;
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    c->over_ms = opt_time(&r, "over", 1000, PERIOD_MAX_MS, c->over_ms);
    l->least_ms = opt_time(&r, "least", 1000, PERIOD_MAX_MS, l->least_ms);
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
    l->idle_ms = opt_time(&r, "idle_for", 1000, PERIOD_MAX_MS, l->idle_ms);
    l->idle_busy = yaml_opt_i64(&r, "idle_busy", 1, 100, l->idle_busy);
    l->idle_memory = yaml_opt_i64(&r, "idle_memory", 0, 99, l->idle_memory);
    l->size_ms = opt_time(&r, "sizes_over", 1000, 30 * PERIOD_MAX_MS, l->size_ms);
    l->size_least_ms = opt_time(&r, "sizes_least", 1000, PERIOD_MAX_MS, l->size_least_ms);
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
        opt_time(&r, "minutes", KEEP_MIN_MS, KEEP_MAX_MS, ret_config->keep_ms[0]);
    ret_config->keep_ms[1] =
        opt_time(&r, "ten_minutes", KEEP_MIN_MS, KEEP_MAX_MS, ret_config->keep_ms[1]);
    ret_config->keep_ms[2] =
        opt_time(&r, "hours", KEEP_MIN_MS, KEEP_MAX_MS, ret_config->keep_ms[2]);
    ret_config->throttled_ms =
        opt_time(&r, "throttled_for", 0, PERIOD_MAX_MS, ret_config->throttled_ms);
    ret_config->forgotten_ms =
        opt_time(&r, "forgotten_for", 1000, 3650 * PERIOD_MAX_MS, ret_config->forgotten_ms);
    read_diagnose(&r, ret_config);
    read_advise(&r, &ret_config->advise);
    yaml_reader_finish_in(root, &r);
}
