/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the parts of directives.c: one function per flag. A value is not NULL. The functions
 * set keys of the specification, and return 0, ERR_INVALID or ERR_UNSUPPORTED.
 */
#ifndef BELAY_CLI_FLAGS_DIRECTIVES_PRIVATE_H
#define BELAY_CLI_FLAGS_DIRECTIVES_PRIVATE_H

#include "base/str.h"
#include "cli/flags/directives.h"
#include <string.h>

/* Temporary keys of the specification, which directives_finish removes.
 * true: the number of nodes comes from #SBATCH lines or a Slurm program only */
#define NODES_BY_SLURM "nodes_by_slurm"
/* true: so does the list of nodes */
#define NODELIST_BY_SLURM "nodelist_by_slurm"
/* true: all nodes must have the same one of several features */
#define SAME_FEATURE "same_feature"
/* what directives_take_written returns */
#define WRITTEN "written"
/* text from outside, for an error or a warning */
#define SHOWN(text) str_show((text), (char[STR_SHOW_MAX]){0})

struct directive_context {
    const char *where; /* "train.sh:4" or "command line" */
    bool sbatch;
    json_t *spec;
    directive_warn_fn warn;
    void *warn_ctx;
};

void directive_warn(const struct directive_context *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets the key to the number in value. */
int directive_number(const struct directive_context *c, const char *key, const char *value,
    int64_t min, int64_t max, struct err *e);

/* ---- resources of a node, in directives_resources.c ---- */
int directive_cpus(const struct directive_context *c, const char *value, struct err *e);
int directive_nodes(const struct directive_context *c, const char *value, struct err *e);
int directive_tasks(const struct directive_context *c, const char *value, struct err *e);
int directive_tasks_per_node(const struct directive_context *c, const char *value, struct err *e);
int directive_tasks_per_gpu(const struct directive_context *c, const char *value, struct err *e);
int directive_mincpus(const struct directive_context *c, const char *value, struct err *e);
int directive_cpus_per_gpu(const struct directive_context *c, const char *value, struct err *e);
int directive_script_on(const struct directive_context *c, const char *value, struct err *e);
int directive_gpus_of_job(const struct directive_context *c, const char *value, struct err *e);
int directive_gpus(const struct directive_context *c, const char *value, struct err *e);
int directive_gpus_per_task(const struct directive_context *c, const char *value, struct err *e);
int directive_gpu_memory(const struct directive_context *c, const char *value, struct err *e);
int directive_gres(const struct directive_context *c, const char *value, struct err *e);
int directive_licences(const struct directive_context *c, const char *value, struct err *e);
int directive_constraint(const struct directive_context *c, const char *value, struct err *e);
int directive_region(const struct directive_context *c, const char *value, struct err *e);
int directive_zone(const struct directive_context *c, const char *value, struct err *e);
int directive_memory(const struct directive_context *c, const char *value, struct err *e);
int directive_memory_per_cpu(const struct directive_context *c, const char *value, struct err *e);
int directive_memory_per_gpu(const struct directive_context *c, const char *value, struct err *e);

/* ---- choice of nodes, in directives_nodes.c ---- */
int directive_nodelist(const struct directive_context *c, const char *value, struct err *e);
int directive_exclude(const struct directive_context *c, const char *value, struct err *e);
int directive_nodefile(const struct directive_context *c, const char *value, struct err *e);
/* Once, after all flags and before directives_finish_resources. */
int directives_finish_nodes(json_t *spec, struct err *e);

/* The job's input data, such as s3://bucket/prefix,size=140G. */
int directive_data(const struct directive_context *c, const char *value, struct err *e);

/* Computes what depends on several flags: tasks, memory for each CPU or GPU, CPUs for each GPU.
 * Once, after all flags. */
int directives_finish_resources(json_t *spec, struct err *e);

/* ---- environment, in directives_env.c ---- */
int directive_export(const struct directive_context *c, const char *value, struct err *e);
/* Adds this process's environment, unless --export says otherwise, for jobs submitted through
 * Slurm's names. Once, after all flags. */
void directives_finish_env(json_t *spec, directive_warn_fn warn, void *warn_ctx);

#endif
