/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/diagnose.h"

#include "base/vformat.h"
#include <stdio.h>

#define MIB (INT64_C(1) << 20)
/* percentage of a GPU's memory from which a program is taken to use the GPU */
#define WORKS_MIN 1

const struct diagnose_limits diagnose_usual = {
    .least_ms = 60000,
    .cpu_idle = 60,
    .gpu_idle = 60,
    .blocked = 25,
    .stall = 10,
    .thread = 85,
    .link = 70,
    .network_mib_s = 50,
    .thermal = 10,
    .power = 30,
    .clock = 80,
    .faults_s = 200,
    .memory = 90,
    .swapped_kib_s = 1024,
};

const char *const finding_code_names[] = {"gpu-errors", "thermal-throttling", "power-throttling",
    "hardware-slowdown", "memory-pressure", "gpu-starved", "iowait", "network", "one-busy-thread",
    NULL};
_Static_assert(sizeof(finding_code_names) / sizeof(finding_code_names[0]) == FINDING_CODES + 1,
    "a name for each");

static const char *const remedies[FINDING_CODES][FINDING_REMEDIES_MAX + 1] = {
    [FINDING_GPU_ERRORS] = {"take the node out of use (belay nodes drain NODE) and have the GPU "
                            "reset or replaced: errors that are not "
                            "corrected end programs or change results",
        "resume from a checkpoint that was saved before the errors"},
    [FINDING_THERMAL] =
        {"have the machine's cooling checked: fans, air flow, neighbouring machines",
            "run on another node meanwhile: belay requeue JOB"},
    [FINDING_POWER] =
        {"raise the GPU's power limit if the rack has power to spare (nvidia-smi --power-limit)",
            "fewer GPUs at full power may do more than all of them throttled"},
    [FINDING_SLOWED] = {"have the machine's power supply and cooling checked: the board halves its "
                        "clocks to protect itself",
        "run on another node meanwhile: belay requeue JOB"},
    [FINDING_MEMORY] = {"ask for more memory: --mem",
        "smaller batches, fewer loader processes, or data that is read in parts"},
    [FINDING_GPU_STARVED] = {"more loader processes, and more cpus for them (-c)",
        "prefetch and pin: have the next batches ready before they are asked for",
        "do once and store what is decoded or tokenised in every epoch",
        "bring the data near: a local disk, larger files"},
    [FINDING_IOWAIT] = {"read from a local disk or from memory instead of a shared store",
        "read ahead and in larger pieces: many small files cost a wait each",
        "more readers at once, if the store can take them"},
    [FINDING_NETWORK] = {"read what is used again from a local disk, compress what is sent",
        "a machine with a faster network, or data in the same zone",
        "for gangs: larger buckets, overlapped or fewer collectives"},
    [FINDING_THREAD] = {"let it use more threads: OMP_NUM_THREADS, -j, the workers of a loader",
        "if it cannot, ask for fewer cpus (-c): the others are paid for and idle",
        "look at what the thread does: belay exec JOB, then py-spy dump or perf top"},
};

/* ---- findings ---- */

struct judge {
    const struct diagnose_input *in;
    const struct diagnose_limits *limits;
    struct finding found[FINDING_CODES];
    bool has[FINDING_CODES];
};

static void __attribute__((format(printf, 2, 3))) set_text(struct finding *f, const char *fmt, ...)
{
    VFORMAT(f->text, fmt);
}

static void show(struct finding *f, const char *name, int64_t value, const char *unit)
{
    if (f->n_evidence < FINDING_EVIDENCE_MAX)
        f->evidence[f->n_evidence++] =
            (struct evidence){.name = name, .unit = unit, .value = value};
}

static struct finding begin(enum finding_code code, int32_t rank, int64_t severity)
{
    return (struct finding){
        .code = code, .rank = rank, .gpu = -1, .severity = severity, .remedies = remedies[code]};
}

static void keep(struct judge *j, const struct finding *f)
{
    if (j->has[f->code] && j->found[f->code].severity >= f->severity)
        return;
    j->has[f->code] = true;
    j->found[f->code] = *f;
}

/* ---- one rank ---- */

/* Values derived from a rank's load; numbers are percentages. */
struct view {
    const struct diagnose_rank *r;
    int64_t cpu;                    /* of its cpus */
    int64_t blocked, stall, thread; /* of time: waiting for disks, for memory; busiest thread */
    bool has_gpus;                  /* it has GPUs of known utilisation */
    int64_t gpu;                    /* mean utilisation of its GPUs */
    bool works;                     /* it holds memory of a GPU */
};

static int64_t per_second(int64_t n, int64_t ms)
{
    return ms > 0 ? (int64_t)((__extension__(__int128) n) * 1000 / ms) : 0;
}

static struct view view_of(const struct diagnose_input *in, const struct diagnose_rank *r)
{
    const struct task_load *l = &r->load;
    struct view v = {.r = r,
        .cpu = load_percent(l->cpu_ms, l->ms * (r->cpus > 0 ? r->cpus : 1)),
        .blocked = load_percent(l->blocked_ms, l->ms),
        .stall = load_percent(l->stall_ms, l->ms),
        .thread = load_percent(l->busiest_ms, l->ms)};
    int64_t known = 0, busy = 0;
    for (size_t i = 0; i < in->n_gpus; i++) {
        const struct gpu_load *g = &in->gpus[i].load;
        if (in->gpus[i].rank != r->rank)
            continue;
        known += g->known_ms;
        busy += g->busy_ms;
        v.works = v.works || load_percent(g->memory_bytes, g->memory_total_bytes) >= WORKS_MIN;
    }
    v.has_gpus = known > 0;
    v.gpu = load_percent(busy, known);
    return v;
}

/* Whether the resources that determine the price are idle: GPUs, or cpus if there are none. */
static bool idles(const struct judge *j, const struct view *v)
{
    return v->has_gpus ? v->gpu < j->limits->gpu_idle : v->cpu < j->limits->cpu_idle;
}

static void show_busy(struct finding *f, const struct view *v)
{
    if (v->has_gpus)
        show(f, "gpu_busy", v->gpu, "%");
    show(f, "cpu_busy", v->cpu, "%");
}

/* Formats "its GPUs are 20 % busy". */
static const char *busy_words(const struct view *v, char out[64])
{
    snprintf(out, 64, "its %s are %lld %% busy", v->has_gpus ? "GPUs" : "cpus",
        (long long)(v->has_gpus ? v->gpu : v->cpu));
    return out;
}

static void judge_memory(struct judge *j, const struct view *v)
{
    const struct task_load *l = &v->r->load;
    int64_t swapped = per_second(l->node_swapped_bytes / 1024, l->ms),
            faults = per_second(l->faults, l->ms);
    int64_t used = load_percent(l->memory_bytes, v->r->memory_bytes);
    bool swaps = l->swap_bytes >= MIB && swapped >= j->limits->swapped_kib_s;
    bool stalls = v->stall >= j->limits->stall;
    bool thrashes = faults >= j->limits->faults_s && used >= j->limits->memory;
    struct finding f = begin(FINDING_MEMORY, v->r->rank,
        swaps    ? 1000 + v->stall
        : stalls ? v->stall
                 : 1);
    if (!swaps && !stalls && !thrashes)
        return;
    if (swaps)
        set_text(&f,
            "it swaps: %lld MiB of it are swapped out, and its node moves %lld MiB a second in and "
            "out",
            (long long)(l->swap_bytes / MIB), (long long)(swapped / 1024));
    else if (stalls)
        set_text(&f, "it waits for memory %lld %% of the time: pages that it needs were evicted",
            (long long)v->stall);
    else
        set_text(&f, "%lld pages a second were read again, with %lld %% of its memory in use",
            (long long)faults, (long long)used);
    show(&f, "memory_stall", v->stall, "%");
    show(&f, "swapped_out", l->swap_bytes, "bytes");
    show(&f, "node_swapping", swapped, "KiB/s");
    show(&f, "major_faults", faults, "/s");
    show(&f, "refaults", per_second(l->refaults, l->ms), "/s");
    show(&f, "memory", l->memory_bytes, "bytes");
    keep(j, &f);
}

static bool is_blocked(const struct judge *j, const struct view *v)
{
    return v->blocked >= j->limits->blocked;
}

static void judge_iowait(struct judge *j, const struct view *v)
{
    const struct task_load *l = &v->r->load;
    struct finding f = begin(FINDING_IOWAIT, v->r->rank, v->blocked);
    char busy[64];
    if (!is_blocked(j, v) || !idles(j, v))
        return;
    set_text(&f,
        "it waits for disks %lld %% of the time, and %s; it reads %lld MiB a second and writes "
        "%lld",
        (long long)v->blocked, busy_words(v, busy),
        (long long)per_second(l->read_bytes / MIB, l->ms),
        (long long)per_second(l->write_bytes / MIB, l->ms));
    show(&f, "blocked", v->blocked, "%");
    show(&f, "read", per_second(l->read_bytes, l->ms), "bytes/s");
    show(&f, "write", per_second(l->write_bytes, l->ms), "bytes/s");
    show(&f, "node_iowait",
        load_percent(l->node_iowait_ms, l->ms * (l->node_cpus > 0 ? l->node_cpus : 1)), "%");
    show_busy(&f, v);
    keep(j, &f);
}

/* Whether the busier direction exceeds its limit: a percentage of the link if the link's speed is
 * known, otherwise limits->network_mib_s. */
static bool is_networked(
    const struct judge *j, const struct view *v, int64_t *ret_bytes_s, int64_t *ret_percent)
{
    const struct task_load *l = &v->r->load;
    int64_t in = per_second(l->net_in_bytes, l->ms), out = per_second(l->net_out_bytes, l->ms);
    *ret_bytes_s = in > out ? in : out;
    *ret_percent = load_percent(*ret_bytes_s, l->link_bytes_s);
    return l->link_bytes_s > 0
               ? *ret_percent >= j->limits->link
               : *ret_bytes_s >= j->limits->network_mib_s * MIB && !is_blocked(j, v);
}

static void judge_network(struct judge *j, const struct view *v)
{
    const struct task_load *l = &v->r->load;
    int64_t bytes_s, percent;
    char busy[64], share[96] = "the speed of its link is not known";
    if (!is_networked(j, v, &bytes_s, &percent) || !idles(j, v))
        return;
    struct finding f = begin(FINDING_NETWORK, v->r->rank, bytes_s);
    if (l->link_bytes_s > 0)
        snprintf(share, sizeof(share), "%lld %% of its link", (long long)percent);
    set_text(&f, "the network carries %lld MiB a second (%s%s), and %s", (long long)(bytes_s / MIB),
        share, l->net_is_nodes ? "; counted for the whole node, not per job" : "",
        busy_words(v, busy));
    show(&f, l->net_is_nodes ? "node_network_in" : "network_in", per_second(l->net_in_bytes, l->ms),
        "bytes/s");
    show(&f, l->net_is_nodes ? "node_network_out" : "network_out",
        per_second(l->net_out_bytes, l->ms), "bytes/s");
    show(&f, "link", l->link_bytes_s, "bytes/s");
    show_busy(&f, v);
    keep(j, &f);
}

static bool has_busy_thread(const struct judge *j, const struct view *v)
{
    const struct task_load *l = &v->r->load;
    return v->thread >= j->limits->thread && v->r->cpus >= 2 && v->cpu < j->limits->cpu_idle &&
           l->cpu_ms <= l->busiest_ms * 3 / 2;
}

static void judge_thread(struct judge *j, const struct view *v)
{
    struct finding f = begin(FINDING_THREAD, v->r->rank, v->thread);
    if (!has_busy_thread(j, v) || !idles(j, v))
        return;
    set_text(&f,
        "one thread uses %lld %% of a cpu and the others almost nothing: its %lld cpus are %lld %% "
        "busy",
        (long long)v->thread, (long long)v->r->cpus, (long long)v->cpu);
    show(&f, "busiest_thread", v->thread, "%");
    show(&f, "cpus", v->r->cpus, "");
    show_busy(&f, v);
    keep(j, &f);
}

static void judge_starved(struct judge *j, const struct view *v)
{
    int64_t bytes_s, percent;
    char why[160];
    if (!v->has_gpus || !v->works || v->gpu >= j->limits->gpu_idle)
        return;
    if (v->r->load.ms > 0 && is_blocked(j, v))
        snprintf(why, sizeof(why), "their input waits for disks %lld %% of the time",
            (long long)v->blocked);
    else if (v->cpu >= j->limits->thread)
        snprintf(why, sizeof(why), "the %lld cpus that prepare their input are %lld %% busy",
            (long long)v->r->cpus, (long long)v->cpu);
    else if (v->thread >= j->limits->thread)
        snprintf(why, sizeof(why), "one thread that prepares their input uses %lld %% of a cpu",
            (long long)v->thread);
    else if (is_networked(j, v, &bytes_s, &percent))
        snprintf(why, sizeof(why),
            "their input comes over a network that is full, %lld MiB a second",
            (long long)(bytes_s / MIB));
    else
        return;
    struct finding f = begin(FINDING_GPU_STARVED, v->r->rank, 100 - v->gpu);
    set_text(&f, "its GPUs are %lld %% busy: %s", (long long)v->gpu, why);
    show_busy(&f, v);
    show(&f, "blocked", v->blocked, "%");
    show(&f, "busiest_thread", v->thread, "%");
    show(&f, "read", per_second(v->r->load.read_bytes, v->r->load.ms), "bytes/s");
    keep(j, &f);
}

/* ---- one GPU ---- */

static void show_gpu(struct finding *f, const struct diagnose_gpu *g)
{
    const struct gpu_load *l = &g->load;
    f->gpu = g->index;
    show(f, "gpu_busy", load_percent(l->busy_ms, l->known_ms), "%");
    show(f, "temperature", l->temperature_c, "C");
    show(f, "power", per_second(l->energy_mj, l->ms) / 1000, "W");
    show(f, "power_limit", l->power_limit_mw / 1000, "W");
    show(f, "clock", l->ms > 0 ? l->clock_permille_ms / l->ms / 10 : 0, "%");
}

static void judge_gpu(struct judge *j, const struct diagnose_gpu *g)
{
    const struct gpu_load *l = &g->load;
    int64_t thermal = load_percent(l->thermal_ms, l->ms), power = load_percent(l->power_ms, l->ms),
            slowed = load_percent(l->slowed_ms, l->ms);
    int64_t clock = l->ms > 0 ? l->clock_permille_ms / l->ms / 10 : 0;
    if (l->ecc_uncorrected > 0) {
        struct finding f = begin(FINDING_GPU_ERRORS, g->rank, l->ecc_uncorrected);
        set_text(&f, "GPU %lld had %lld uncorrectable memory errors", (long long)g->index,
            (long long)l->ecc_uncorrected);
        f.gpu = g->index;
        show(&f, "ecc_uncorrected", l->ecc_uncorrected, "");
        show(&f, "ecc_corrected", l->ecc_corrected, "");
        keep(j, &f);
    }
    if (thermal >= j->limits->thermal) {
        struct finding f = begin(FINDING_THERMAL, g->rank, thermal);
        set_text(&f,
            "GPU %lld is throttled by heat %lld %% of the time: %lld degrees, its clock at %lld %% "
            "of its maximum",
            (long long)g->index, (long long)thermal, (long long)l->temperature_c, (long long)clock);
        show(&f, "throttled_by_heat", thermal, "%");
        show_gpu(&f, g);
        keep(j, &f);
    }
    /* At full load the power limit is usually reached; it matters only if it lowers the clock. */
    if (power >= j->limits->power && clock > 0 && clock < j->limits->clock) {
        struct finding f = begin(FINDING_POWER, g->rank, power);
        set_text(&f,
            "GPU %lld is throttled by its power limit %lld %% of the time, its clock at %lld %% of "
            "its maximum",
            (long long)g->index, (long long)power, (long long)clock);
        show(&f, "throttled_by_power", power, "%");
        show_gpu(&f, g);
        keep(j, &f);
    }
    if (slowed >= j->limits->thermal && thermal < j->limits->thermal && power < j->limits->power) {
        struct finding f = begin(FINDING_SLOWED, g->rank, slowed);
        set_text(&f,
            "GPU %lld is throttled by its board %lld %% of the time, its clock at %lld %% of its "
            "maximum",
            (long long)g->index, (long long)slowed, (long long)clock);
        show(&f, "slowed", slowed, "%");
        show_gpu(&f, g);
        keep(j, &f);
    }
}

/* ---- the whole job ---- */

bool diagnose_is_enough(const struct diagnose_input *in)
{
    for (size_t i = 0; i < in->n_ranks; i++)
        if (in->ranks[i].load.ms >= in->limits->least_ms)
            return true;
    return false;
}

size_t diagnose(const struct diagnose_input *in, struct finding out[FINDING_CODES])
{
    struct judge j = {.in = in, .limits = in->limits};
    size_t n = 0;
    for (size_t i = 0; i < in->n_ranks; i++) {
        if (in->ranks[i].load.ms < in->limits->least_ms)
            continue;
        struct view v = view_of(in, &in->ranks[i]);
        judge_memory(&j, &v);
        judge_starved(&j, &v);
        judge_iowait(&j, &v);
        judge_network(&j, &v);
        judge_thread(&j, &v);
    }
    for (size_t i = 0; i < in->n_gpus; i++)
        if (in->gpus[i].load.ms >= in->limits->least_ms)
            judge_gpu(&j, &in->gpus[i]);
    for (int c = 0; c < FINDING_CODES; c++)
        if (j.has[c])
            out[n++] = j.found[c];
    return n;
}
