/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/env.h"

#include "agent/task/job_secrets.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT_FIRST 30000 /* above the ports of services, below ephemeral ports */
#define PORTS 2700
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct list_of_env {
    char **items;
    size_t n;
};

/* Replaces an entry of the same name. Takes item. */
static void put(struct list_of_env *l, char *item)
{
    size_t name = (size_t)(strchr(item, '=') - item) + 1;
    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->items[i], item, name) == 0) {
            free(l->items[i]);
            l->items[i] = item;
            return;
        }
    l->items = mem_resize(l->items, l->n + 2, sizeof(*l->items));
    l->items[l->n++] = item;
    l->items[l->n] = NULL;
}

static void put_text(struct list_of_env *l, const char *name, const char *value)
{
    put(l, mem_printf("%s=%s", name, value));
}

static void put_number(struct list_of_env *l, const char *name, int64_t value)
{
    put(l, mem_printf("%s=%lld", name, (long long)value));
}

static void put_path(struct list_of_env *l, const char *name, const char *dir, const char *file)
{
    put(l, mem_printf("%s=%s/%s", name, dir, file));
}

static void add_basics(struct list_of_env *l, const struct job_user *u)
{
    put_text(l, "PATH", DEFAULT_PATH);
    put_text(l, "HOME", u->home);
    put_text(l, "USER", u->name);
    put_text(l, "LOGNAME", u->name);
    put_text(l, "SHELL", u->shell);
    put_text(l, "LANG", "C.UTF-8");
    put_text(l, "TMPDIR", "/tmp");
}

/* Appends dir, so that the job's own programs and modules come first. */
static void add_dir(struct list_of_env *l, const char *name, const char *dir)
{
    size_t n = strlen(name);
    for (size_t i = 0; dir && i < l->n; i++)
        if (strncmp(l->items[i], name, n) == 0 && l->items[i][n] == '=' && l->items[i][n + 1]) {
            put(l, mem_printf("%s:%s", l->items[i], dir));
            return;
        }
    if (dir)
        put_text(l, name, dir);
}

/* "a,b,c": the names of the attempt's nodes, by rank. */
static char *node_list(const struct task_env *t)
{
    struct buf list = {0};
    for (size_t i = 0; i < t->spec->n_peers; i++)
        buf_printf(&list, "%s%s", i ? "," : "", t->spec->peers[i].name);
    char *text = mem_strdup(t->spec->n_peers ? buf_str(&list) : t->node);
    buf_deinit(&list);
    return text;
}

static int64_t n_nodes(const struct task_env *t)
{
    return t->spec->n_peers ? (int64_t)t->spec->n_peers : 1;
}

/* The rendezvous variables of torch.distributed and similar; a launcher on each node numbers its
 * own workers. */
static void add_rendezvous(struct list_of_env *l, const struct task_env *t)
{
    const struct wire_desired_attempt *s = t->spec;
    if (s->n_peers == 0)
        return;
    put_text(l, "MASTER_ADDR", s->peers[0].address);
    put_number(l, "MASTER_PORT", PORT_FIRST + (s->job * 31 + s->attempt) % PORTS);
    if (s->script_on_first)
        return; /* the tasks of a step get their ranks from srun */
    put_number(l, "WORLD_SIZE", (int64_t)s->n_peers);
    put_number(l, "RANK", s->rank);
    put_number(l, "LOCAL_RANK", 0);
    if (t->restored)
        put_number(
            l, "BELAY_RESTORED_RANKS", t->restored_ranks ? t->restored_ranks : (int64_t)s->n_peers);
    if (t->restored_ranks)
        put_path(l, "BELAY_RESTORED_DIR", t->dir, "ranks");
}

/* On a node with GPUs the variable is set for every task, so a task without GPUs sees none. CUDA
 * numbers GPUs by PCI bus only if asked to. For AMD one variable suffices: ROCm renumbers the GPUs
 * that it leaves visible, and a second variable would select by the new numbers. */
static void add_gpus(struct list_of_env *l, const struct task_env *t)
{
    if (t->gpu_maker == GPU_MAKER_NONE)
        return;
    const char *slices = strstr(t->gpus, ",MIG-");
    put_text(l, "BELAY_GPUS", t->gpus);
    if (t->gpu_maker == GPU_MAKER_AMD) {
        put_text(l, "ROCR_VISIBLE_DEVICES", t->gpus);
        return;
    }
    /* CUDA cannot use whole GPUs and slices together: pass the whole ones */
    if (slices && !str_starts(t->gpus, "MIG-"))
        put(l, mem_printf("CUDA_VISIBLE_DEVICES=%.*s", (int)(slices - t->gpus), t->gpus));
    else
        put_text(l, "CUDA_VISIBLE_DEVICES", t->gpus);
    put_text(l, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
}

static void add_belay(struct list_of_env *l, const struct task_env *t)
{
    if (t->spec->rank == 0 && str_eq(t->spec->input, WIRE_INPUT_OPEN))
        put_path(l, "BELAY_STDIN", t->dir, TASK_STDIN);
    put_number(l, "BELAY_JOB_ID", t->spec->job);
    put_text(l, "BELAY_JOB_NAME", t->spec->options.name);
    put_number(l, "BELAY_ATTEMPT", t->spec->attempt);
    if (t->spec->array > 0) {
        put_number(l, "BELAY_ARRAY_ID", t->spec->array);
        put_number(l, "BELAY_ARRAY_INDEX", t->spec->array_index);
    }
    put_path(l, "BELAY_CHECKPOINT_DIR", t->dir, t->checkpoint);
    put_path(l, "BELAY_CONTROL_DIR", t->dir, "control");
    put_path(l, "BELAY_NOTICE_FILE", t->dir, "control/notice");
    put_path(l, "BELAY_JOB_FILE", t->dir, t->spec->image ? "control/" TASK_JOB : TASK_JOB);
    put_number(l, "BELAY_RESTORED", t->restored);
    put_number(l, "BELAY_GRACE_S", t->grace_ms / 1000);
    char *nodes = node_list(t);
    put_number(l, "BELAY_NODE_RANK", t->spec->rank);
    put_number(l, "BELAY_NNODES", n_nodes(t));
    put_text(l, "BELAY_NODELIST", nodes);
    free(nodes);
    add_gpus(l, t);
    add_rendezvous(l, t);
    add_dir(l, "PATH", t->bin);
    add_dir(l, "PYTHONPATH", t->python);
}

static void add_slurm_array(struct list_of_env *l, const struct wire_desired_attempt *s)
{
    if (s->array == 0)
        return;
    put_number(l, "SLURM_ARRAY_JOB_ID", s->array);
    put_number(l, "SLURM_ARRAY_TASK_ID", s->array_index);
    put_number(l, "SLURM_ARRAY_TASK_COUNT", s->array_count);
    put_number(l, "SLURM_ARRAY_TASK_MIN", s->array_min);
    put_number(l, "SLURM_ARRAY_TASK_MAX", s->array_max);
    put_number(l, "SLURM_ARRAY_TASK_STEP", s->array_step);
}

/* One number a node in Slurm's notation, "2(x3),1": `all` tasks spread over the nodes, or at_most
 * on each if all is 0. */
static void put_counts(
    struct list_of_env *l, const char *name, int64_t nodes, int64_t all, int64_t at_most)
{
    struct buf text = {0};
    for (int64_t i = 0, same; i < nodes; i += same) {
        int64_t n = all > 0 ? all / nodes + (i < all % nodes) : at_most;
        same = all == 0 || i >= all % nodes ? nodes - i : all % nodes - i;
        buf_printf(&text, "%s%lld", i ? "," : "", (long long)n);
        if (same > 1)
            buf_printf(&text, "(x%lld)", (long long)same);
    }
    put_text(l, name, buf_str(&text));
    buf_deinit(&text);
}

/* As in Slurm, the number of tasks is set only if the job states it; srun takes it as default. */
static void add_slurm_tasks_of_first(struct list_of_env *l, const struct task_env *t)
{
    const struct wire_desired_attempt *s = t->spec;
    int64_t nodes = n_nodes(t), all = s->all_tasks > 0 ? s->all_tasks : s->tasks * nodes;
    int64_t each = s->cpus_per_task > 0 ? s->cpus_per_task : 1;
    if (all > 0) {
        put_number(l, "SLURM_NTASKS", all);
        put_number(l, "SLURM_NPROCS", all);
    }
    if (s->all_tasks == 0 && s->tasks > 0)
        put_number(l, "SLURM_NTASKS_PER_NODE", s->tasks);
    put_counts(l, "SLURM_TASKS_PER_NODE", nodes, all, s->cpus / each > 0 ? s->cpus / each : 1);
    put_counts(l, "SLURM_JOB_CPUS_PER_NODE", nodes, 0, s->cpus);
    put_number(l, "SLURM_CPUS_ON_NODE", s->cpus);
    put_number(l, "SLURM_CPUS_PER_TASK", each);
}

static void add_slurm_tasks(struct list_of_env *l, const struct task_env *t)
{
    const struct wire_desired_attempt *s = t->spec;
    int64_t tasks = s->tasks > 0 ? s->tasks : 1;
    put_number(l, "SLURM_NTASKS", n_nodes(t) * tasks);
    put_number(l, "SLURM_NPROCS", n_nodes(t) * tasks);
    if (n_nodes(t) > 1)
        put(l, mem_printf(
                   "SLURM_TASKS_PER_NODE=%lld(x%lld)", (long long)tasks, (long long)n_nodes(t)));
    else
        put_number(l, "SLURM_TASKS_PER_NODE", tasks);
    put_number(l, "SLURM_CPUS_PER_TASK", s->cpus_per_task > 0 ? s->cpus_per_task : s->cpus / tasks);
    put_number(l, "SLURM_CPUS_ON_NODE", s->cpus);
    put_number(l, "SLURM_JOB_CPUS_PER_NODE", s->cpus);
}

static void add_slurm(struct list_of_env *l, const struct task_env *t)
{
    const struct wire_desired_attempt *s = t->spec;
    static const char *const counts[] = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"};
    static const char *const ranks[] = {"SLURM_PROCID", "SLURM_NODEID"};
    static const char *const lists[] = {"SLURM_NODELIST", "SLURM_JOB_NODELIST"};
    char *nodes = node_list(t);
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof(host) - 1) == 0)
        put_text(l, "HOSTNAME", host); /* overrides the submit host's, which shells would keep */
    put_text(l, "ENVIRONMENT", "BATCH");
    put_number(l, "SLURM_JOB_ID", s->job);
    put_number(l, "SLURM_JOBID", s->job);
    add_slurm_array(l, s);
    put_text(l, "SLURM_JOB_NAME", s->options.name);
    put_text(l, "SLURM_JOB_USER", t->user->name);
    put_text(l, "SLURM_SUBMIT_DIR", *s->workdir ? t->cwd : s->cwd);
    if (*s->pool)
        put_text(l, "SLURM_JOB_PARTITION", s->pool);
    if (*s->cluster)
        put_text(l, "SLURM_CLUSTER_NAME", s->cluster);
    put_number(l, "SLURM_RESTART_COUNT", s->attempt - 1);
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        put_number(l, counts[i], n_nodes(t));
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
        put_number(l, ranks[i], s->rank);
    s->script_on_first ? add_slurm_tasks_of_first(l, t) : add_slurm_tasks(l, t);
    put_number(l, "SLURM_LOCALID", 0);
    put_number(l, "SLURM_GTIDS", s->rank);
    put_number(l, "SLURM_JOB_UID", t->user->uid);
    put_number(l, "SLURM_JOB_GID", t->user->gid);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        put_text(l, lists[i], nodes);
    put_text(l, "SLURMD_NODENAME", t->node);
    free(nodes);
    if (s->memory_mib > 0)
        put_number(l, "SLURM_MEM_PER_NODE", s->memory_mib);
    if (*t->gpus) {
        int64_t n = 1;
        for (const char *p = t->gpus; *p; p++)
            n += *p == ',';
        put_number(l, "SLURM_GPUS_ON_NODE", n);
        put_text(l, "SLURM_JOB_GPUS", t->gpus);
        put_text(l, "SLURM_STEP_GPUS", t->gpus);
    }
}

static void add_secrets(struct list_of_env *l, const struct task_env *t)
{
    for (size_t i = 0; t->secrets && i < t->secrets->n_of_job; i++) {
        const struct wire_secret *s = &t->secrets->of_job[i];
        size_t n;
        char *value = s->variable && *s->variable ? job_secret_value(s, &n) : NULL;
        if (!value)
            continue;
        put_text(l, s->variable, value);
        explicit_bzero(value, n);
        free(value);
    }
}

char **env_build(const struct task_env *t)
{
    struct list_of_env l = {0};
    add_basics(&l, t->user);
    if (t->own_tmp)
        put_path(&l, "TMPDIR", t->dir, t->checkpoint);
    for (size_t i = 0; i < t->spec->n_env; i++)
        put_text(&l, t->spec->env[i].name, t->spec->env[i].value);
    add_secrets(&l, t);
    if (t->spec->slurm_env)
        add_slurm(&l, t);
    add_belay(&l, t);
    if (t->secrets_dir)
        put_text(&l, "BELAY_SECRETS_DIR", t->secrets_dir);
    return l.items;
}
