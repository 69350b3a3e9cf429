/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/slurm/slurm_env.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/slurm_programs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Flags that belay does not have (flags/foreign.h); job/attributes.c has the others. */
#define FOREIGN_OF_JOBS(p)                                                                         \
    {p "CORE_SPEC", "core-spec", VARIABLE_VALUE}, {p "DELAY_BOOT", "delay-boot", VARIABLE_VALUE},  \
        {p "NO_KILL", "no-kill", VARIABLE_SWITCH},                                                 \
        {p "OVERCOMMIT", "overcommit", VARIABLE_SWITCH},                                           \
        {p "REQ_SWITCH", "switches", VARIABLE_VALUE},                                              \
        {p "RESERVATION", "reservation", VARIABLE_VALUE},                                          \
        {p "SPREAD_JOB", "spread-job", VARIABLE_SWITCH},                                           \
        {p "THREAD_SPEC", "thread-spec", VARIABLE_VALUE},                                          \
        {p "USE_MIN_NODES", "use-min-nodes", VARIABLE_SWITCH},                                     \
    {                                                                                              \
        "SLURM_CLUSTERS", "clusters", VARIABLE_VALUE                                               \
    }

static const struct slurm_variable of_sbatch[] = {FOREIGN_OF_JOBS("SBATCH_"),
    {"SBATCH_BATCH", "batch", VARIABLE_VALUE}, {"SBATCH_CLUSTERS", "clusters", VARIABLE_VALUE},
    {"SBATCH_CONTAINER", "container", VARIABLE_VALUE},
    {"SBATCH_GET_USER_ENV", "get-user-env", VARIABLE_SWITCH},
    {"SBATCH_WAIT", "wait", VARIABLE_SWITCH}, {"", NULL, VARIABLE_VALUE}};

static const struct slurm_variable of_salloc[] = {FOREIGN_OF_JOBS("SALLOC_"),
    {"SALLOC_BURST_BUFFER", "bb", VARIABLE_VALUE}, {"SALLOC_CLUSTERS", "clusters", VARIABLE_VALUE},
    {"SALLOC_CONTAINER", "container", VARIABLE_VALUE}, {"", NULL, VARIABLE_VALUE}};

static const struct slurm_variable of_srun[] = {FOREIGN_OF_JOBS("SLURM_"),
    {"SLURM_BURST_BUFFER", "bb", VARIABLE_VALUE}, {"SRUN_CONTAINER", "container", VARIABLE_VALUE},
    {"", NULL, VARIABLE_VALUE}};

static const struct slurm_variable of_squeue[] = {{"SLURM_CLUSTERS", "clusters", VARIABLE_REFUSED},
    {"SQUEUE_ACCOUNT", "account", VARIABLE_VALUE}, {"SQUEUE_FORMAT2", "Format", VARIABLE_VALUE},
    {"SQUEUE_LICENSES", "licenses", VARIABLE_REFUSED}, {"SQUEUE_NAMES", "name", VARIABLE_VALUE},
    {"SQUEUE_PARTITION", "partition", VARIABLE_VALUE}, {"SQUEUE_QOS", "qos", VARIABLE_VALUE},
    {"SQUEUE_SORT", "sort", VARIABLE_VALUE}, {"SQUEUE_STATES", "states", VARIABLE_VALUE},
    {"SQUEUE_USERS", "user", VARIABLE_VALUE}, {"", NULL, VARIABLE_VALUE}};

static const struct slurm_variable of_scancel[] = {{"SLURM_CLUSTERS", "clusters", VARIABLE_REFUSED},
    {"SCANCEL_ACCOUNT", "account", VARIABLE_REFUSED},
    {"SCANCEL_INTERACTIVE", "interactive", VARIABLE_REFUSED},
    {"SCANCEL_NAME", "name", VARIABLE_VALUE}, {"SCANCEL_PARTITION", "partition", VARIABLE_VALUE},
    {"SCANCEL_QOS", "qos", VARIABLE_REFUSED}, {"SCANCEL_STATE", "state", VARIABLE_VALUE},
    {"SCANCEL_USER", "user", VARIABLE_VALUE}, {"SCANCEL_VERBOSE", "verbose", VARIABLE_SWITCH},
    {"SCANCEL_WCKEY", "wckey", VARIABLE_REFUSED}, {"", NULL, VARIABLE_VALUE}};

static const struct slurm_variable of_sinfo[] = {{"SLURM_CLUSTERS", "clusters", VARIABLE_REFUSED},
    {"SINFO_PARTITION", "partition", VARIABLE_VALUE}, {"", NULL, VARIABLE_VALUE}};

static const struct slurm_variable none[] = {{"", NULL, VARIABLE_VALUE}};

static const struct slurm_variable *own_of(const char *program)
{
    return str_eq(program, "sbatch")    ? of_sbatch
           : str_eq(program, "salloc")  ? of_salloc
           : str_eq(program, "srun")    ? of_srun
           : str_eq(program, "squeue")  ? of_squeue
           : str_eq(program, "scancel") ? of_scancel
           : str_eq(program, "sinfo")   ? of_sinfo
                                        : none;
}

static bool is_of(const char *name, const char *program)
{
    return str_eq(program, "sbatch")   ? str_starts(name, "SBATCH_")
           : str_eq(program, "salloc") ? str_starts(name, "SALLOC_")
                                       : str_eq(program, "srun") && (str_starts(name, "SLURM_") ||
                                                                        str_starts(name, "SRUN_"));
}

static int by_name(const void *a, const void *b)
{
    const struct slurm_variable *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The next word from *text on; false at the end. */
static bool next_name(const char **text, char out[SLURM_VARIABLE_MAX])
{
    size_t n = *text ? strcspn(*text, " ") : 0;
    if (n == 0)
        return false;
    snprintf(out, SLURM_VARIABLE_MAX, "%.*s", (int)n, *text);
    *text += n + ((*text)[n] == ' ');
    return true;
}

struct slurm_variable *slurm_variables(const char *program)
{
    const struct slurm_variable *own = own_of(program);
    size_t n = 0, n_own = 0;
    while (own[n_own].name[0])
        n_own++;
    struct slurm_variable *all = mem_array(n_own + 3 * job_attributes_count + 1, sizeof(*all));
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        const char *names = a->env;
        char name[SLURM_VARIABLE_MAX];
        while (next_name(&names, name)) {
            if (!is_of(name, program))
                continue;
            all[n] = (struct slurm_variable){
                .flag = a->flag, .kind = a->takes ? VARIABLE_VALUE : VARIABLE_SWITCH};
            STR_COPY(all[n++].name, name);
        }
    }
    memcpy(all + n, own, n_own * sizeof(*own));
    /* sorted, because of two variables for one flag the later applies */
    qsort(all, n + n_own, sizeof(*all), by_name);
    return all;
}

/* Slurm treats "0", "no" and "false" as unset. */
static bool is_off(const struct slurm_variable *v, const char *value)
{
    return !value || !*value ||
           (v->kind != VARIABLE_VALUE && (str_eq(value, "0") || strcasecmp(value, "no") == 0 ||
                                             strcasecmp(value, "false") == 0));
}

const char *slurm_variable_value(const struct slurm_variable *v)
{
    const char *value = getenv(v->name);
    return is_off(v, value) ? NULL : value;
}

static int check_times(const char *program, struct err *e)
{
    const char *format = getenv("SLURM_TIME_FORMAT");
    char shown[STR_SHOW_MAX];
    if (!format || !*format || str_eq(format, "standard") || str_eq(program, "scancel"))
        return 0;
    return err_set(e, ERR_INVALID,
        "SLURM_TIME_FORMAT=%s is not supported: unset it; times are written as 2026-11-22T12:00:00",
        str_show(format, shown));
}

/* Flags for the variables that are set; NULL-terminated. The caller frees them. */
static int make_words(const char *program, char ***ret_words, struct err *e)
{
    size_t n = 0;
    int rc = check_times(program, e);
    if (rc)
        return rc;
    struct slurm_variable *all = slurm_variables(program);
    for (const struct slurm_variable *v = all; rc == 0 && v->name[0]; v++, n++)
        if (v->kind == VARIABLE_REFUSED && slurm_variable_value(v))
            rc = err_set(e, ERR_INVALID,
                "%s is not supported, nor is --%s: unset it if the command is right without it",
                v->name, v->flag);
    if (rc) {
        free(all);
        return rc;
    }
    char **words = mem_array(n + 1, sizeof(*words));
    n = 0;
    for (const struct slurm_variable *v = all; v->name[0]; v++) {
        const char *value = slurm_variable_value(v);
        if (value)
            words[n++] = v->kind == VARIABLE_SWITCH ? mem_printf("--%s", v->flag)
                                                    : mem_printf("--%s=%s", v->flag, value);
    }
    words[n] = NULL;
    free(all);
    *ret_words = words;
    return 0;
}

/* Runs the program with `words` before the user's own, which override them. */
static int run_with(const struct slurm_program *p, char *const *words, int argc, char **argv)
{
    int n = 0;
    while (words[n])
        n++;
    char **all = mem_array((size_t)(n + argc) + 1, sizeof(*all));
    all[0] = argv[0];
    memcpy(all + 1, words, (size_t)n * sizeof(*all));
    memcpy(all + 1 + n, argv + 1, (size_t)(argc - 1) * sizeof(*all));
    all[n + argc] = NULL;
    int rc = p->run(n + argc, all); /* run permutes them */
    free(all);
    return rc;
}

int slurm_program_run(const struct slurm_program *p, int argc, char **argv)
{
    char **words;
    struct err e;
    if (p->run == sbatch_main || p->run == salloc_main || p->run == srun_main ||
        p->run == scontrol_main)
        /* submission.c applies the variables of jobs, which override the script */
        return p->run(argc, argv);
    if (make_words(p->name, &words, &e) != 0) {
        slurm_error(p->name, "%s", e.text);
        return CLI_FAILED;
    }
    int rc = run_with(p, words, argc, argv);
    for (char **w = words; *w; w++)
        free(*w);
    free(words);
    return rc;
}
