/* SPDX-License-Identifier: Apache-2.0
 *
 * Placing a step on nodes, and waiting for CPUs. Steps of a job share state in BELAY_CONTROL_DIR of
 * srun's node: a file for each CPU (of each node that it may use), locked by its user; one locked
 * by a step waiting for CPUs (so that a large step is not starved); and one that grows by a byte
 * with each step, which numbers the steps. All locks are released when their process ends.
 */
#include "cli/slurm/step.h"

#include "base/buf.h"
#include "job/hosts.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/slurm/step_parts.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/step_tasks.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define SLOT_WAIT_MS 50
#define SLOTS_OF_NODE 65536

struct run {
    const struct step *s;
    const char *control;
    int64_t job, cpus; /* cpus: per node */
    struct step_nodes nodes;
    int64_t may[LAYOUT_NODES_MAX]; /* ranks of the nodes that it may use */
    int64_t n_may;
    int64_t ranks[LAYOUT_NODES_MAX]; /* ranks of the nodes that it uses */
    struct layout layout;
    int *slots;
    int64_t n_slots;
};

/* ---- shared state ---- */

static int open_shared(const struct run *r, const char *name, int64_t number)
{
    char *path = number < 0 ? mem_printf("%s/%s", r->control, name)
                            : mem_printf("%s/%s.%lld", r->control, name, (long long)number);
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    free(path);
    return fd;
}

static int64_t next_step(const struct run *r)
{
    int fd = open_shared(r, "srun.steps", -1);
    off_t end = fd >= 0 && write(fd, ".", 1) == 1 ? lseek(fd, 0, SEEK_CUR) : 1;
    if (fd >= 0)
        close(fd);
    return end > 0 ? end - 1 : 0;
}

static void release_slots(struct run *r, int64_t keep)
{
    while (r->n_slots > keep)
        close(r->slots[--r->n_slots]);
}

/* Locks one more CPU of the node if one is free. */
static bool take_slot(struct run *r, int64_t rank)
{
    for (int64_t i = 0; i < r->cpus; i++) {
        int fd = open_shared(r, "srun.cpu", rank * SLOTS_OF_NODE + i);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            r->slots[r->n_slots++] = fd;
            return true;
        }
        if (fd >= 0)
            close(fd);
    }
    return false;
}

static bool take_slots_of(struct run *r, int64_t rank, int64_t n)
{
    int64_t before = r->n_slots;
    while (r->n_slots < before + n)
        if (!take_slot(r, rank)) {
            release_slots(r, before);
            return false;
        }
    return true;
}

static int64_t cpus_of(const struct run *r, int64_t node)
{
    return layout_count(&r->layout, node) * (r->s->cpus_per_task > 0 ? r->s->cpus_per_task : 1);
}

/* Takes the CPUs on the first nodes that have enough of them free. */
static bool find_nodes(struct run *r)
{
    int64_t node = 0;
    for (int64_t k = 0; k < r->n_may && node < r->layout.nodes; k++)
        if (take_slots_of(r, r->may[k], cpus_of(r, node)))
            r->ranks[node++] = r->may[k];
    if (node < r->layout.nodes)
        release_slots(r, 0);
    return node == r->layout.nodes;
}

/* Waits until the job's other steps leave enough CPUs for this one; the job's time limit bounds the
 * wait. */
static int take_slots(struct run *r)
{
    const struct timespec pause = {.tv_nsec = SLOT_WAIT_MS * 1000000L};
    bool is_reported = r->s->quiet;
    if (r->s->overlap || getenv("SLURM_STEP_ID")) {
        memcpy(r->ranks, r->may, sizeof(r->ranks));
        return 0;
    }
    int64_t wanted = cpus_of(r, 0);
    if (wanted > r->cpus) {
        slurm_error(r->s->program,
            "Unable to create step for job %lld: More processors requested than permitted",
            (long long)r->job);
        return -1;
    }
    r->slots = mem_array((size_t)(wanted * r->layout.nodes), sizeof(*r->slots));
    int turn = open_shared(r, "srun.turn", -1);
    if (turn < 0 || flock(turn, LOCK_EX) != 0) {
        slurm_error(r->s->program, "cannot use the job's control directory %s: %s", r->control,
            strerror(errno));
        if (turn >= 0)
            close(turn);
        return -1;
    }
    while (!find_nodes(r)) {
        if (!is_reported)
            fprintf(stderr,
                "%s: Job %lld step creation temporarily disabled, retrying (Requested nodes are "
                "busy)\n",
                r->s->program, (long long)r->job);
        is_reported = true;
        nanosleep(&pause, NULL);
    }
    close(turn);
    return 0;
}

/* ---- on the nodes of the job ---- */

static int refuse(const struct run *r, const char *text)
{
    slurm_error(r->s->program, "Unable to create step for job %lld: %s", (long long)r->job, text);
    return -1;
}

static int choose_nodes(struct run *r)
{
    const struct step *s = r->s;
    struct err e;
    if (hosts_check(s->nodelist ? s->nodelist : "", NULL, &e) != 0 ||
        hosts_check(s->exclude ? s->exclude : "", NULL, &e) != 0)
        return refuse(r, e.text);
    for (int64_t rank = s->relative; rank < r->nodes.n; rank++)
        if ((!s->nodelist || hosts_has(s->nodelist, r->nodes.names[rank])) &&
            !(s->exclude && hosts_has(s->exclude, r->nodes.names[rank])))
            r->may[r->n_may++] = rank;
    return r->n_may > 0 ? 0 : refuse(r, "Requested nodes are not in the job");
}

static int set_distribution(struct run *r)
{
    const char *how = r->s->distribution ? r->s->distribution : "block";
    size_t n = strcspn(how, ":,");
    r->layout.cyclic = n == 6 && strncmp(how, "cyclic", n) == 0;
    bool block = (n == 5 && strncmp(how, "block", n) == 0) || (n == 1 && how[0] == '*');
    return r->layout.cyclic || block
               ? 0
               : refuse(r, "-m is block or cyclic between the nodes of a job");
}

static int make_layout(struct run *r)
{
    const struct step *s = r->s;
    struct err e;
    struct layout_ask ask = {.job_nodes = r->n_may,
        .nodes_min = s->nodes_min,
        .nodes_max = s->nodes_max,
        .tasks = s->tasks,
        .tasks_per_node = s->tasks_per_node};
    if (ask.tasks == 0 && ask.tasks_per_node == 0)
        ask.tasks = step_env_number("SLURM_NTASKS", 0);
    if (layout_make(&ask, &r->layout, &e) != 0)
        return refuse(r, e.text);
    if (s->nodes_max > r->layout.nodes && !s->quiet)
        fprintf(stderr,
            "%s: Warning: can't run %lld processes on %lld nodes, setting nnodes to %lld\n",
            s->program, (long long)r->layout.tasks, (long long)s->nodes_max,
            (long long)r->layout.nodes);
    if (layout_count(&r->layout, 0) > STEP_TASKS_MAX)
        return refuse(r, "a node has at most 4096 tasks of a step");
    return set_distribution(r);
}

static int check_programs(const struct step *s, int64_t tasks, const char *file)
{
    struct err e;
    if (!s->programs || programs_check(s->programs, tasks, &e) == 0)
        return 0;
    slurm_error(s->program, "%s: %s", file, e.text);
    return -1;
}

static int run_parts(struct run *r, char **argv)
{
    struct buf names = {0}, per_node = {0};
    struct parts *parts = NULL;
    struct err e;
    int64_t ids[STEP_TASKS_MAX];
    struct step_node on = {
        .step = next_step(r), .tasks = r->layout.tasks, .nodes = r->layout.nodes, .ids = ids};
    for (int64_t node = 0; node < r->layout.nodes; node++) {
        buf_printf(&names, "%s%s", node ? "," : "", r->nodes.names[r->ranks[node]]);
        for (int64_t i = 0; r->ranks[node] == 0 && i < layout_count(&r->layout, node); i++)
            ids[on.n++] = layout_task(&r->layout, on.node = node, i);
    }
    layout_format(&r->layout, &per_node);
    on.nodelist = buf_str(&names);
    on.per_node = buf_str(&per_node);
    const struct parts_ask ask = {.s = r->s,
        .nodes = &r->nodes,
        .layout = &r->layout,
        .ranks = r->ranks,
        .step = on.step,
        .nodelist = on.nodelist,
        .per_node = on.per_node,
        .argv = argv};
    int code = 1, rc = parts_create(&ask, &parts, &e);
    if (rc == 0)
        code = step_tasks(r->s, &on, parts, argv);
    else
        slurm_error(r->s->program, "%s", e.text);
    parts_destroy(parts);
    buf_deinit(&names);
    buf_deinit(&per_node);
    return code;
}

static int run_on_nodes(struct run *r, char **argv)
{
    if (choose_nodes(r) != 0 || make_layout(r) != 0 ||
        check_programs(r->s, r->layout.tasks, argv[0]) != 0 || take_slots(r) != 0)
        return 1;
    return run_parts(r, argv);
}

/* ---- on this node only ---- */

/* In a job whose script runs on each node, every srun numbers its tasks as if all did the same. */
static int run_here(struct run *r, char **argv)
{
    const struct step *s = r->s;
    const char *node = getenv("SLURMD_NODENAME");
    int64_t nodes = step_env_number("SLURM_NNODES", 1), rank = step_env_number("SLURM_NODEID", 0),
            ids[STEP_TASKS_MAX];
    bool nested = getenv("SLURM_STEP_ID");
    if (s->pty && (s->nodelist || s->exclude || s->relative > 0)) {
        slurm_error(s->program, "--pty: the task runs on srun's node: leave -w, -x and -r out");
        return 1;
    }
    if (s->pty && !isatty(STDIN_FILENO) && !s->quiet)
        slurm_warn(s->program, "--pty: standard input is no terminal, and the task gets none");
    nodes = nodes > 0 && !nested ? nodes : 1;
    int64_t all = step_env_number("SLURM_NTASKS", nodes) / nodes,
            n = s->tasks > 0 ? s->tasks : s->tasks_per_node;
    n = s->pty ? 1 : n > 0 ? n : nested ? 1 : all;
    n = n < 1 ? 1 : n > STEP_TASKS_MAX ? STEP_TASKS_MAX : n;
    if (s->nodes_min > 1) {
        slurm_error(s->program, "--nodes above 1 needs a job whose script runs on the first of "
                                "several nodes (--script-on first)");
        return 1;
    }
    r->n_may = 1;
    r->layout = (struct layout){.nodes = 1, .tasks = n};
    if (check_programs(s, n * nodes, argv[0]) != 0 || take_slots(r) != 0)
        return 1;
    rank = nested ? 0 : rank;
    for (int64_t i = 0; i < n; i++)
        ids[i] = rank * n + i;
    char per_node[24];
    snprintf(per_node, sizeof(per_node), "%lld", (long long)n);
    const struct step_node on = {.step = next_step(r),
        .tasks = n * nodes,
        .nodes = nodes,
        .node = rank,
        .ids = ids,
        .n = n,
        .nodelist = node ? node : "localhost",
        .per_node = per_node};
    return step_tasks(s, &on, NULL, argv);
}

int step_run(const struct step *s, char **argv)
{
    struct run r = {
        .s = s, .control = getenv("BELAY_CONTROL_DIR"), .job = step_env_number("SLURM_JOB_ID", 0)};
    struct err e;
    r.cpus = step_env_number("SLURM_CPUS_ON_NODE", INT32_MAX);
    bool has_nodes = !s->pty && !getenv("SLURM_STEP_ID") &&
                     step_nodes_read(r.control, &r.nodes, &e) == 0 && r.nodes.n > 1;
    int code = has_nodes ? run_on_nodes(&r, argv) : run_here(&r, argv);
    release_slots(&r, 0);
    free(r.slots);
    step_nodes_deinit(&r.nodes);
    return code;
}
