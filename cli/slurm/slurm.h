/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs with Slurm's names share: squeue's, sinfo's and sacct's languages of output
 * formats, Slurm's words for the states of jobs, its forms of times, and its options. Everything
 * above "belayd" is pure.
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

/* One thing that can be shown. A table of them ends with a name NULL. */
struct slurm_field {
    const char *name; /* in -O, and for sacct */
    char letter;      /* after %; 0: it has none */
    const char *title;
    int width; /* sacct: unless a format says otherwise; negative: to the left */
    int what;  /* for value */
};

/* Adds the text of one thing. row NULL does not happen. */
typedef void (*slurm_value_fn)(const void *row, int what, struct buf *out);

struct slurm_piece {
    const struct slurm_field *field; /* NULL: only before */
    char *before;                    /* what stands before it as it is; owned; NULL: nothing */
    char *after;                     /* likewise behind it (-O "name:10/") */
    int width;                       /* 0: as wide as it is */
    bool right;
    bool marks_cuts; /* a value that is too wide ends in '+' */
};

struct slurm_format {
    struct slurm_piece pieces[SLURM_FIELDS_MAX];
    size_t n;
};

/* "%.18i %9P|%j": % [.] [width] letter. ERR_INVALID names what is wrong. slurm_format_deinit in
 * every case. */
int slurm_format_letters(const char *text, const struct slurm_field *fields,
    struct slurm_format *ret_format, struct err *e);

/* "jobid:10,name:.20": NAME[:[.][WIDTH][TEXT]], 20 wide unless it says otherwise. */
int slurm_format_names(const char *text, const struct slurm_field *fields,
    struct slurm_format *ret_format, struct err *e);

/* sacct's "jobid,state%20,elapsed%-12". Names may be any beginning of one that no other begins
 * with. */
int slurm_format_sacct(const char *text, const struct slurm_field *fields,
    struct slurm_format *ret_format, struct err *e);

void slurm_format_deinit(struct slurm_format *f);

/* One line with its end: the titles when row is NULL. */
void slurm_format_line(
    const struct slurm_format *f, slurm_value_fn value, const void *row, struct buf *out);

/* The same without widths, with this between the fields; trailing: behind the last, too. */
void slurm_format_plain(const struct slurm_format *f, const char *delimiter, bool trailing,
    slurm_value_fn value, const void *row, struct buf *out);

/* ---- lists ---- */

/* The next of "a, b,c", without blanks, into out; false at the end. */
bool slurm_next_item(const char **list, struct buf *out);
/* whatever the case of letters; NULL has everything */
bool slurm_list_has(const char *list, const char *word);
bool slurm_lists_meet(const char *list, const char *words); /* it has one of them */
/* The same of names of nodes, where the list may be folded together: n[1-3,7]. */
bool slurm_hosts_meet(const char *hosts, const char *names);
bool slurm_is_hosts(const char *program, const char *text); /* false: told as the program's error */

/* Of --clusters: there is one, which is all of them. */
bool slurm_is_this_cluster(const char *names);

/* Calls on_index for each of "0-6,8-99:3%20", in order; what comes after a '%' is how many may run
 * at once. */
void slurm_each_index(const char *indexes, void (*on_index)(void *ctx, int64_t index), void *ctx);

/* Adds "n[1-2,10]" of names with commas between, and what is no such list as it is. */
void slurm_hosts_fold(const char *names, struct buf *out);

/* Adds "n1", "n2", "n10" of "n[1-2,10]" (job/hosts.h), each with an end of line. ERR_INVALID. */
int slurm_hosts_expand(const char *list, struct buf *out, struct err *e);

/* ---- times ---- */

/* "2:05", "1:02:05", "3-01:02:05" as squeue; long_form: "00:02:05" as sacct. TIME_NONE_MS:
 * "INVALID" */
void slurm_time_used(int64_t ms, bool long_form, struct buf *out);

/* A limit, likewise; 0: none. */
void slurm_time_limit(int64_t ms, bool long_form, struct buf *out);

/* "2026-11-21T20:44:26" by this machine's clock; without a time the fallback. */
void slurm_time_at(struct wall at, const char *fallback, struct buf *out);

/* "2026-11-21", "2026-11-21T20:44[:26]", "20:44[:26]", "now", "now-2hours", "now+1day", "today",
 * "midnight", "noon", "yesterday", "tomorrow", "MMDD[YY]", "MM/DD[/YY]", "MM.DD[.YY]", by this
 * machine's clock. ERR_INVALID. */
int slurm_time_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e);

/* ---- jobs ---- */

struct slurm_job {
    const json_t *job;    /* JOB of docs/reference/api.md; borrowed */
    const json_t *detail; /* all of GET /jobs/ID, or NULL when only the list was read; borrowed */
    /* where it runs or ran; while it waits all that it may run in, with commas; "": not known;
     * borrowed */
    const char *pools;
    const char *nodes;  /* their names, with commas; "" unknown or none; borrowed */
    const char *reason; /* why it waits, in Slurm's words; borrowed */
    /* when it will start, as belayd expects it; NULL: not asked, or not known */
    const char *expected;
};

struct slurm_state {
    const char *name, *compact;
};

/* Slurm's word for a code of `belay why`. */
const char *slurm_reason(const char *code);

/* Slurm's word for how a job is. */
const struct slurm_state *slurm_job_state(const struct slurm_job *j);

/* The state that a user's word or letters name ("running", "R", "CG"); NULL: there is none. */
const struct slurm_state *slurm_state_find(const char *word);

/* What a node or a job has of GPUs and named resources, "gpu:2,lego:4", with `before` in front of
 * each; nothing if there is none. */
void slurm_gres(const json_t *row, const char *before, struct buf *out);

/* ---- programs ---- */

struct slurm_program {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the name */
};
extern const struct slurm_program slurm_programs[]; /* ends with a name NULL */

/* The one that a path ends in; NULL: none. */
const struct slurm_program *slurm_program_find(const char *path);
/* With the variables of the environment that stand for its flags (slurm_env.h). Its exit code. */
int slurm_program_run(const struct slurm_program *p, int argc, char **argv);

/* "squeue: error: ..." */
void slurm_error(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void slurm_warn(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The version that --version tells: Slurm's, that scripts compare; ours behind it. */
#define SLURM_VERSION "slurm 22.05.8 (belay " BELAY_VERSION ")"

/* ---- belayd ---- */

/* GET, with the error told as the program's. NULL: told. */
json_t *slurm_get(const char *program, struct client *c, const char *path);

#define STARTS_MAX 32 /* jobs: each is a question that belayd has to work on */

struct slurm_query {
    const char *program;
    const char *user, *name, *pool, *states; /* lists with commas; NULL: any */
    const char *jobs;                        /* numbers, with commas; NULL: any */
    /* those that have, too; without numbers arrays only while something of them has not begun */
    bool ended;
    bool wants_nodes, wants_reasons, wants_detail;
    bool wants_starts;           /* of the first STARTS_MAX that wait */
    struct wall ended_after;     /* or live; WALL_NONE */
    struct wall submitted_until; /* WALL_NONE */
};

/* Calls on_job for every job of the query, by number. 0, or the exit code after a report; a job
 * that does not exist is reported when strict. */
typedef void (*slurm_job_fn)(void *ctx, const struct slurm_job *j);
int slurm_each_job(
    struct client *c, const struct slurm_query *q, bool strict, slurm_job_fn on_job, void *ctx);

/* The number in "42", or of a name of its parts like "42.batch", "42.0". 0: it is none. */
int64_t slurm_job_number(const char *text);

#define SLURM_TASKS_MAX 1024 /* bytes of a list of tasks */

/* Of an array also "42_7" and "42_[5-10,12]": *ret_id is 42, and ret_tasks what stands behind it,
 * without brackets; else "". False: it is neither. */
bool slurm_job_name(const char *text, int64_t *ret_id, char ret_tasks[SLURM_TASKS_MAX]);

/* What jobs have to show: squeue's and sacct's tables hold these. */
enum slurm_job_value {
    JOB_ID,
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
    JOB_COMMENT,
    JOB_RESTARTS,
    JOB_BATCH_HOST,
    JOB_CPU_TIME,
    JOB_CPU_TIME_S,
    JOB_NULL,
    JOB_NOTHING,
    JOB_CLUSTER,
    JOB_SHARED,
    JOB_ZERO,
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
/* Those of them that tell what it used; they need the query's details, MAX_RSS_NODE its nodes,
 * too. */
bool slurm_is_usage(int what);
void slurm_used_value(const struct slurm_job *j, int what, struct buf *out);

/* As Slurm's --json has it. The caller's. */
json_t *slurm_job_json(const struct slurm_job *j);

#endif
