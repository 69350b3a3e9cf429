/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the programs with Slurm's names: the output format languages of squeue, sinfo and
 * sacct, Slurm's words for job states, its time formats, and its options. Everything above "belayd"
 * is pure.
 */
#ifndef BELAY_CLI_SLURM_SLURM_H
#define BELAY_CLI_SLURM_SLURM_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/cli.h"
#include <getopt.h>
#include <stdbool.h>

/* ---- formats ---- */

#define SLURM_FIELDS_MAX 128
#define SLURM_WIDTH_MAX 1000
#define SLURM_FORMAT_MAX 4096 /* bytes of a format */

/* A field that can be shown. A table ends with name NULL. */
struct slurm_field {
    const char *name; /* in -O, and for sacct */
    char letter;      /* after %; 0 = none */
    const char *title;
    int width;         /* sacct: default width; negative: left-aligned */
    int what;          /* passed to value; 0 if fixed */
    const char *fixed; /* the text in every line; NULL if value makes it */
};

/* Adds the text of one field that is not fixed. row is never NULL. */
typedef void (*slurm_value_fn)(const void *row, int what, struct buf *out);

/* Adds the text of any field. row is never NULL. */
void slurm_field_text(
    const struct slurm_field *f, slurm_value_fn value, const void *row, struct buf *out);

struct slurm_piece {
    const struct slurm_field *field; /* NULL: only the text before */
    char *before;                    /* literal text before it; owned; may be NULL */
    char *after;                     /* literal text after it (-O "name:10/") */
    int width;                       /* 0 = natural width */
    bool right;
    bool marks_cuts; /* a cut value ends in '+' */
};

struct slurm_format {
    struct slurm_piece pieces[SLURM_FIELDS_MAX];
    size_t n;
};

/* "%.18i %9P|%j": % [.] [width] letter. ERR_INVALID names the error. Call slurm_format_deinit in
 * every case. */
int slurm_format_letters(const char *text, const struct slurm_field *fields,
    struct slurm_format *ret_format, struct err *e);

/* "jobid:10,name:.20": NAME[:[.][WIDTH][TEXT]], 20 wide by default. */
int slurm_format_names(const char *text, const struct slurm_field *fields,
    struct slurm_format *ret_format, struct err *e);

/* sacct's "jobid,state%20,elapsed%-12". Names may be abbreviated to a unique beginning. */
int slurm_format_sacct(const char *text, const struct slurm_field *fields,
    struct slurm_format *ret_format, struct err *e);

void slurm_format_deinit(struct slurm_format *f);

/* One line with its newline: the titles if row is NULL. */
void slurm_format_line(
    const struct slurm_format *f, slurm_value_fn value, const void *row, struct buf *out);

/* A line without widths, with a delimiter between the fields; trailing: also after the last. */
void slurm_format_plain(const struct slurm_format *f, const char *delimiter, bool trailing,
    slurm_value_fn value, const void *row, struct buf *out);

/* ---- lists ---- */

/* Copies the next entry of "a, b,42_[1,3]" to out, without blanks around it; false at the end. */
bool slurm_next_item(const char **list, struct buf *out);
/* case-insensitive; a NULL list contains everything */
bool slurm_list_has(const char *list, const char *word);
bool slurm_lists_intersect(
    const char *list, const char *words); /* whether list has one of the words */
/* slurm_lists_intersect for names of nodes, where the list may be folded: n[1-3,7]. */
bool slurm_hosts_intersect(const char *hosts, const char *names);
/* False after reporting the error as the program's. */
bool slurm_is_hosts(const char *program, const char *text);

/* For --clusters: there is one cluster, and only "all" names it. */
bool slurm_is_this_cluster(const char *names);

/* Calls on_index for each of "0-6,8-99:3%20", in order; the number after '%' is the limit of
 * concurrent tasks. */
void slurm_each_index(const char *indexes, void (*on_index)(void *ctx, int64_t index), void *ctx);

/* Adds "n[1-2,10]" for comma-separated names; any other text unchanged. */
void slurm_hosts_fold(const char *names, struct buf *out);

/* Adds "n1", "n2", "n10" of "n[1-2,10]" (job/hosts.h), one per line. ERR_INVALID. */
int slurm_hosts_expand(const char *list, struct buf *out, struct err *e);

/* ---- times ---- */

/* "2:05", "1:02:05", "3-01:02:05" as in squeue; long_form: "00:02:05" as in sacct. TIME_NONE_MS:
 * "INVALID" */
void slurm_time_used(int64_t ms, bool long_form, struct buf *out);

/* A limit in the same form; 0 = none. */
void slurm_time_limit(int64_t ms, bool long_form, struct buf *out);

/* "2026-11-21T20:44:26" in local time; the fallback if there is no time. */
void slurm_time_at(struct wall at, const char *fallback, struct buf *out);

/* "2026-11-21", "2026-11-21T20:44[:26]", "20:44[:26]", "now", "now-2hours", "now+1day", "today",
 * "midnight", "noon", "yesterday", "tomorrow", "MMDD[YY]", "MM/DD[/YY]", "MM.DD[.YY]", in local
 * time. ERR_INVALID. */
int slurm_time_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e);

/* ---- jobs ---- */

struct slurm_job {
    const json_t *job; /* JOB of docs/reference/api.md; borrowed */
    /* the reply of GET /jobs/ID, or NULL if only the list was read; borrowed */
    const json_t *detail;
    /* pool where it runs or ran; while it waits all pools that it may run in, comma-separated; ""
     * if unknown; borrowed */
    const char *pools;
    const char *nodes;  /* names of its nodes, comma-separated; "" if unknown or none; borrowed */
    const char *reason; /* why it waits, in Slurm's words; borrowed */
    /* belayd's expected start; NULL if not requested, or unknown */
    const char *expected;
};

struct slurm_state {
    const char *name, *compact;
};

/* Slurm's word for a code of `belay why`. */
const char *slurm_reason(const char *code);

/* Slurm's word for a job's state. */
const struct slurm_state *slurm_job_state(const struct slurm_job *j);

/* The state for a user's word or letters ("running", "R", "CG"); NULL if unknown. */
const struct slurm_state *slurm_state_find(const char *word);

/* GPUs and named resources of a node or a job, "gpu:2,lego:4", with `before` before each; nothing
 * if there are none. */
void slurm_gres(const json_t *row, const char *before, struct buf *out);

/* ---- programs ---- */

struct slurm_program {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the name */
    /* its long options, which end with name NULL; NULL: those of sbatch (slurm_completion.c) */
    const struct option *const *options;
};
extern const struct slurm_program slurm_programs[]; /* ends with name NULL */
extern const struct option *const squeue_options;
extern const struct option *const scancel_options;
extern const struct option *const sinfo_options;
extern const struct option *const sacct_options;
extern const struct option *const scontrol_options;
extern const struct option *const srun_options;
extern const struct option *const sstat_options;
extern const struct option *const sshare_options;
extern const struct option *const seff_options;

/* The program that a path ends in; NULL if none. */
const struct slurm_program *slurm_program_find(const char *path);
/* Runs it with the environment variables that represent its flags (slurm_env.h). Returns its exit
 * code. */
int slurm_program_run(const struct slurm_program *p, int argc, char **argv);

/* For belay completion: the part for Slurm's names of a shell's script. */
void slurm_completion_bash(void);
void slurm_completion_names(void); /* " sbatch squeue ..." */
void slurm_completion_zsh(void);
void slurm_completion_fish(void);

/* "squeue: error: ..." */
void slurm_error(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void slurm_warn(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For --version: Slurm's version, which scripts compare, followed by ours. */
#define SLURM_VERSION "slurm 22.05.8 (belay " BELAY_VERSION ")"

/* ---- belayd ---- */

/* GET; NULL after reporting the error as the program's. */
json_t *slurm_get(const char *program, struct client *c, const char *path);

#define STARTS_MAX 32 /* jobs: each estimate costs belayd processor time */

struct slurm_query {
    const char *program;
    const char *user, *name, *pool, *states; /* comma-separated lists; NULL for any */
    const char *jobs;                        /* comma-separated numbers; NULL for any */
    /* include ended jobs; without numbers, arrays only while some task has not started */
    bool ended;
    bool wants_nodes, wants_reasons, wants_detail;
    bool wants_starts;           /* for the first STARTS_MAX waiting jobs */
    struct wall ended_after;     /* only jobs that have not ended before; may be WALL_NONE */
    struct wall submitted_until; /* may be WALL_NONE */
};

/* Calls on_job for every job of the query, by number. Returns 0, or the exit code after a report;
 * an unknown job is reported if strict. */
typedef void (*slurm_job_fn)(void *ctx, const struct slurm_job *j);
int slurm_each_job(
    struct client *c, const struct slurm_query *q, bool strict, slurm_job_fn on_job, void *ctx);

/* The number in "42", or in the name of a step, "42.batch", "42.0". 0 if malformed. */
int64_t slurm_job_number(const char *text);

#define SLURM_TASKS_MAX 1024 /* bytes of a list of tasks */

/* Like slurm_job_number, also for tasks of arrays: of "42_7" and "42_[5-10,12]" *ret_id is 42 and
 * ret_tasks "7" and "5-10,12". ret_tasks is "" for any other job. False if malformed. */
bool slurm_job_name(const char *text, int64_t *ret_id, char ret_tasks[SLURM_TASKS_MAX]);

/* Job fields: used by the tables of squeue and sacct. */
enum slurm_job_value {
    JOB_ID = 1,
    JOB_ID_RAW,
    JOB_ARRAY_ID,
    JOB_ARRAY_INDEX,
    JOB_NAME,
    JOB_USER,
    JOB_UID,
    JOB_PARTITION,
    JOB_STATE,
    JOB_STATE_SHORT,
    JOB_REASON,
    JOB_REASON_LIST,
    JOB_NODES,
    JOB_N_NODES,
    JOB_CPUS,
    JOB_TASKS,
    JOB_MEMORY,
    JOB_ALL_MEMORY,
    JOB_GRES,
    JOB_TRES,
    JOB_USED,
    JOB_USED_LONG,
    JOB_USED_S,
    JOB_LIMIT,
    JOB_LIMIT_LONG,
    JOB_LIMIT_MINUTES,
    JOB_LEFT,
    JOB_SUBMITTED,
    JOB_STARTED,
    JOB_ENDED,
    JOB_STARTED_LONG,
    JOB_ENDED_LONG,
    JOB_EXIT,
    JOB_ACCOUNT,
    JOB_QOS,
    JOB_PRIORITY,
    JOB_DIR,
    JOB_COMMAND,
    JOB_OUTPUT,
    JOB_ERROR,
    JOB_RESTARTS,
    JOB_BATCH_HOST,
    JOB_CPU_TIME,
    JOB_CPU_TIME_S,
    JOB_SHARED,
    JOB_FEATURES,
    JOB_LICENCES,
    JOB_NICE,
    JOB_DEPENDENCY,
    JOB_ELIGIBLE,
    JOB_DEADLINE,
    JOB_NODES_WANTED,
    JOB_TOTAL_CPU,
    JOB_AVE_CPU,
    JOB_MAX_RSS,
    JOB_AVE_RSS,
    JOB_USER_CPU,
    JOB_SYSTEM_CPU,
    JOB_MAX_RSS_NODE,
    JOB_MAX_RSS_TASK,
    JOB_NODES_EXCLUDED,
};
void slurm_job_value(const void *job, int what, struct buf *out);
/* Whether it is a usage field; these need the query's details, JOB_MAX_RSS_NODE its nodes. */
bool slurm_is_usage(int what);
void slurm_used_value(const struct slurm_job *j, int what, struct buf *out);

/* In the form of Slurm's --json. A new reference. */
json_t *slurm_job_json(const struct slurm_job *j);

#endif
