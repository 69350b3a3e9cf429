/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants.
 *  1. A sample is taken on a thread from copies. Entries belong to the loop, and are kept while a
 *     sample that uses them is under way.
 *  2. Each load has the next number; an acknowledged one is not sent again.
 */
#include "agent/gpu/telemetry.h"

#include "agent/gpu/nvml.h"
#include "agent/gpu/rapl.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A task, from the first sample that sees it to the end of the window in which it ends. */
struct entry {
    struct link in_all;
    int64_t job, attempt;
    char gpus[GPUS_TEXT_MAX];
    struct probe *probe;
    struct probe_of of;
    struct task_load sum, last; /* of the window; of the last sample */
    bool runs;                  /* runs in the current or last sample */
};

/* A GPU while a task has it, from the first sample to the end of the window. */
struct gpu {
    struct link in_all;
    struct wire_gpu_load sum; /* of the window */
};

/* Error counters of a GPU at the last sample. */
struct errors {
    char id[GPUS_ID_MAX];
    int64_t corrected, uncorrected;
};

struct telemetry {
    struct telemetry_options o;
    struct timer sample_timer;
    struct nvml *nvml;
    struct list tasks, gpus;
    struct rapl rapl;
    int64_t sample_uj;          /* energy of the last sample; -1 = not known */
    int64_t drawn_uj, drawn_ms; /* energy and time of the window, as far as known */
    int64_t cpu_mw;             /* of the previous window; 0 = not known */
    struct probe_node before, now;
    bool is_sampling, stopped, has_before, was_stuck;
    int64_t sample_cpu_us, tasks_cpu_us; /* CPU time of the last sample; of all samples */
    int64_t gpu_cpu_us;                  /* CPU time of GPU samples up to the last one */
    struct mono window;
    struct wall window_at;
    int64_t gpus_at_ms;    /* time of the last GPU sample; 0 = none */
    struct errors *errors; /* counters in that sample */
    size_t n_errors;
    int64_t task_no, gpu_no;
    struct wire_task_load *task_loads; /* not acknowledged, by number */
    struct wire_gpu_load *gpu_loads;
    size_t n_task_loads, n_gpu_loads;
};

static int64_t mono_ms(const struct telemetry *t)
{
    return clock_mono(t->o.timers->clock).ms;
}

/* ---- tasks ---- */

static void entry_free(struct entry *n)
{
    probe_destroy(n->probe);
    free(n);
}

static struct entry *find_entry(struct telemetry *t, int64_t job, int64_t attempt)
{
    LIST_FOREACH (&t->tasks, l) {
        struct entry *n = LIST_ENTRY(l, struct entry, in_all);
        if (n->job == job && n->attempt == attempt)
            return n;
    }
    struct entry *n = mem_alloc(sizeof(*n));
    *n = (struct entry){.job = job, .attempt = attempt, .probe = probe_create()};
    list_push_back(&t->tasks, &n->in_all);
    return n;
}

void telemetry_task(
    struct telemetry *t, int64_t job, int64_t attempt, const struct probe_of *of, const char *gpus)
{
    struct entry *n = find_entry(t, job, attempt);
    n->of = *of;
    n->runs = true;
    STR_COPY(n->gpus, gpus);
}

static int64_t thread_cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Runs on a thread of the pool. */
static void sample_on_thread(void *ctx)
{
    struct telemetry *t = ctx;
    int64_t began = thread_cpu_us();
    probe_node_read(mono_ms(t), &t->now);
    LIST_FOREACH (&t->tasks, l) {
        struct entry *n = LIST_ENTRY(l, struct entry, in_all);
        if (n->runs)
            probe_read(n->probe, &n->of, t->has_before ? &t->before : &t->now, &t->now, &n->last);
    }
    t->sample_uj = rapl_sample(&t->rapl, t->now.at_ms);
    t->sample_cpu_us = thread_cpu_us() - began;
}

/* ---- GPUs ---- */

static const struct entry *owner_of(const struct telemetry *t, const struct nvml_sample *k)
{
    char number[24];
    snprintf(number, sizeof(number), "%lld", (long long)k->index);
    LIST_FOREACH (&t->tasks, l) {
        const struct entry *n = LIST_ENTRY(l, struct entry, in_all);
        if (n->runs &&
            (gpus_text_has(n->gpus, k->id) || (!k->is_slice && gpus_text_has(n->gpus, number))))
            return n;
    }
    return NULL;
}

static struct gpu *find_gpu(
    struct telemetry *t, const struct nvml_sample *k, const struct entry *owner)
{
    int64_t job = owner ? owner->job : 0, attempt = owner ? owner->attempt : 0;
    LIST_FOREACH (&t->gpus, l) {
        struct gpu *g = LIST_ENTRY(l, struct gpu, in_all);
        if (str_eq(g->sum.gpu, k->id) && g->sum.job == job && g->sum.attempt == attempt)
            return g;
    }
    struct gpu *g = mem_alloc(sizeof(*g));
    g->sum = (struct wire_gpu_load){
        .index = k->index, .is_slice = k->is_slice, .job = job, .attempt = attempt};
    STR_COPY(g->sum.gpu, k->id);
    list_push_back(&t->gpus, &g->in_all);
    return g;
}

static struct gpu_load load_of(const struct nvml_sample *k, int64_t ms)
{
    return (struct gpu_load){.ms = ms,
        .known_ms = k->has_busy ? ms : 0,
        .busy_ms = k->has_busy ? ms * k->busy_percent / 100 : 0,
        .memory_bytes = k->memory_bytes,
        .memory_total_bytes = k->memory_total_bytes,
        .energy_mj = k->power_mw * ms / 1000,
        .power_limit_mw = k->power_limit_mw,
        .temperature_c = k->temperature_c,
        .clock_permille_ms = k->clock_permille * ms,
        .thermal_ms = k->thermal ? ms : 0,
        .power_ms = k->power ? ms : 0,
        .slowed_ms = k->slowed ? ms : 0,
        .processes = k->processes};
}

/* Adds the errors since the last sample; the first sample only sets the baseline. */
static void add_errors(const struct telemetry *t, const struct nvml_sample *k, struct gpu_load *l)
{
    for (size_t i = 0; i < t->n_errors; i++) {
        const struct errors *e = &t->errors[i];
        if (!str_eq(e->id, k->id))
            continue;
        l->ecc_corrected = k->ecc_corrected > e->corrected ? k->ecc_corrected - e->corrected : 0;
        l->ecc_uncorrected =
            k->ecc_uncorrected > e->uncorrected ? k->ecc_uncorrected - e->uncorrected : 0;
    }
}

static void keep_errors(struct telemetry *t, const struct nvml_sample *v, size_t n)
{
    free(t->errors);
    t->errors = mem_array(n, sizeof(*t->errors));
    t->n_errors = n;
    for (size_t i = 0; i < n; i++) {
        t->errors[i].corrected = v[i].ecc_corrected;
        t->errors[i].uncorrected = v[i].ecc_uncorrected;
        STR_COPY(t->errors[i].id, v[i].id);
    }
}

static void add_gpus(struct telemetry *t)
{
    struct nvml_sample *v = mem_array(NVML_SAMPLES_MAX, sizeof(*v));
    size_t n = 0;
    int64_t at_ms = 0;
    bool fresh = nvml_get_samples(t->nvml, v, &n, &at_ms);
    for (size_t i = 0; fresh && i < n && t->gpus_at_ms > 0; i++) {
        struct gpu_load l = load_of(&v[i], at_ms - t->gpus_at_ms);
        add_errors(t, &v[i], &l);
        gpu_load_add(&find_gpu(t, &v[i], owner_of(t, &v[i]))->sum.load, &l);
    }
    if (fresh) {
        keep_errors(t, v, n);
        t->gpus_at_ms = at_ms;
    }
    char fault[NVML_FAULT_MAX];
    if (nvml_get_fault(t->nvml, fault) && t->o.faulty)
        t->o.faulty(t->o.ctx, fault);
    if (nvml_is_stuck(t->nvml, mono_ms(t)) != t->was_stuck) {
        t->was_stuck = !t->was_stuck;
        log_warn(t->was_stuck ? "the GPU driver does not answer: no GPU telemetry"
                              : "the GPU driver answers again");
    }
    free(v);
}

/* ---- windows ---- */

static void keep_task(struct telemetry *t, const struct entry *n)
{
    if (t->n_task_loads == TELEMETRY_KEPT_MAX)
        memmove(t->task_loads, t->task_loads + 1, --t->n_task_loads * sizeof(*t->task_loads));
    t->task_loads = mem_resize(t->task_loads, t->n_task_loads + 1, sizeof(*t->task_loads));
    t->task_loads[t->n_task_loads++] = (struct wire_task_load){.no = ++t->task_no,
        .at = t->window_at.ms,
        .job = n->job,
        .attempt = n->attempt,
        .load = n->sum};
}

static void keep_gpu(struct telemetry *t, const struct gpu *g)
{
    if (t->n_gpu_loads == TELEMETRY_KEPT_MAX)
        memmove(t->gpu_loads, t->gpu_loads + 1, --t->n_gpu_loads * sizeof(*t->gpu_loads));
    t->gpu_loads = mem_resize(t->gpu_loads, t->n_gpu_loads + 1, sizeof(*t->gpu_loads));
    struct wire_gpu_load *to = &t->gpu_loads[t->n_gpu_loads++];
    *to = g->sum;
    to->no = ++t->gpu_no;
    to->at = t->window_at.ms;
}

static void begin_window(struct telemetry *t)
{
    t->window = clock_mono(t->o.timers->clock);
    t->window_at = clock_wall(t->o.timers->clock);
}

static void end_window(struct telemetry *t)
{
    size_t before = t->n_task_loads + t->n_gpu_loads;
    LIST_FOREACH (&t->tasks, l) {
        struct entry *n = LIST_ENTRY(l, struct entry, in_all);
        if (n->sum.ms > 0)
            keep_task(t, n);
        n->sum = (struct task_load){0};
        if (n->runs)
            continue;
        link_remove(l);
        entry_free(n);
    }
    LIST_FOREACH (&t->gpus, l) {
        struct gpu *g = LIST_ENTRY(l, struct gpu, in_all);
        keep_gpu(t, g);
        link_remove(l);
        free(g);
    }
    t->cpu_mw = t->drawn_ms > 0 ? t->drawn_uj / t->drawn_ms : 0;
    t->drawn_uj = t->drawn_ms = 0;
    begin_window(t);
    if (t->n_task_loads + t->n_gpu_loads > before)
        t->o.changed(t->o.ctx);
}

/* ---- samples ---- */

static int64_t next_sample_ms(struct telemetry *t)
{
    int64_t gpu_us = nvml_cpu_ns(t->nvml) / 1000,
            used_us = t->sample_cpu_us + gpu_us - t->gpu_cpu_us;
    t->gpu_cpu_us = gpu_us;
    t->tasks_cpu_us += t->sample_cpu_us;
    int64_t least_ms = used_us * SAMPLE_COST_PART / 1000;
    return least_ms > t->o.sample_ms ? least_ms : t->o.sample_ms;
}

static void on_sampled(void *ctx)
{
    struct telemetry *t = ctx;
    t->is_sampling = false;
    if (t->stopped)
        return;
    LIST_FOREACH (&t->tasks, l) {
        struct entry *n = LIST_ENTRY(l, struct entry, in_all);
        if (n->runs)
            task_load_add(&n->sum, &n->last);
    }
    /* a larger value is a fault of the counter */
    if (t->has_before && t->sample_uj >= 0 && t->sample_uj < WIRE_NODE_MW_MAX * RAPL_GAP_MS) {
        t->drawn_uj += t->sample_uj;
        t->drawn_ms += t->now.at_ms - t->before.at_ms;
    }
    t->before = t->now;
    t->has_before = true;
    add_gpus(t);
    if (mono_ms(t) - t->window.ms >= t->o.every_ms)
        end_window(t);
    timer_start(t->o.timers, &t->sample_timer, next_sample_ms(t));
}

static void on_sample_timer(struct timer *timer, void *ctx)
{
    struct telemetry *t = ctx;
    (void)timer;
    LIST_FOREACH (&t->tasks, l)
        LIST_ENTRY(l, struct entry, in_all)->runs = false;
    t->o.list(t->o.ctx, t);
    nvml_request(t->nvml);
    t->is_sampling = true;
    uv_run_work(t->o.loop, sample_on_thread, on_sampled, t);
}

struct telemetry *telemetry_create(const struct telemetry_options *o)
{
    struct telemetry *t = mem_alloc(sizeof(*t));
    t->o = *o;
    timer_init(&t->sample_timer, on_sample_timer, t);
    if (o->every_ms == 0)
        return t;
    t->nvml = nvml_create();
    rapl_open(&t->rapl, o->powercap ? o->powercap : RAPL_DIR);
    begin_window(t);
    timer_start(o->timers, &t->sample_timer, o->sample_ms);
    return t;
}

void telemetry_stop(struct telemetry *t)
{
    t->stopped = true;
    timer_stop(t->o.timers, &t->sample_timer);
}

bool telemetry_is_idle(const struct telemetry *t)
{
    return !t->is_sampling;
}

void telemetry_destroy(struct telemetry *t)
{
    if (!t)
        return;
    nvml_destroy(t->nvml);
    for (struct link *l; (l = list_pop(&t->tasks));)
        entry_free(LIST_ENTRY(l, struct entry, in_all));
    for (struct link *l; (l = list_pop(&t->gpus));)
        free(LIST_ENTRY(l, struct gpu, in_all));
    free(t->errors);
    free(t->task_loads);
    free(t->gpu_loads);
    free(t);
}

int64_t telemetry_cpu_us(const struct telemetry *t)
{
    return t->tasks_cpu_us + t->gpu_cpu_us;
}

/* ---- reporting ---- */

void telemetry_fill(const struct telemetry *t, struct wire_status *s)
{
    s->cpu_mw = t->cpu_mw < WIRE_NODE_MW_MAX ? t->cpu_mw : WIRE_NODE_MW_MAX;
    s->n_task_loads = t->n_task_loads < WIRE_LOADS_MAX ? t->n_task_loads : WIRE_LOADS_MAX;
    s->n_gpu_loads = t->n_gpu_loads < WIRE_LOADS_MAX ? t->n_gpu_loads : WIRE_LOADS_MAX;
    s->task_loads =
        s->n_task_loads ? mem_dup(t->task_loads, s->n_task_loads * sizeof(*s->task_loads)) : NULL;
    s->gpu_loads =
        s->n_gpu_loads ? mem_dup(t->gpu_loads, s->n_gpu_loads * sizeof(*s->gpu_loads)) : NULL;
}

void telemetry_taken(struct telemetry *t, int64_t task_loads, int64_t gpu_loads)
{
    size_t n = 0, k = 0;
    while (n < t->n_task_loads && t->task_loads[n].no <= task_loads)
        n++;
    while (k < t->n_gpu_loads && t->gpu_loads[k].no <= gpu_loads)
        k++;
    t->n_task_loads -= n;
    t->n_gpu_loads -= k;
    if (n > 0)
        memmove(t->task_loads, t->task_loads + n, t->n_task_loads * sizeof(*t->task_loads));
    if (k > 0)
        memmove(t->gpu_loads, t->gpu_loads + k, t->n_gpu_loads * sizeof(*t->gpu_loads));
}
