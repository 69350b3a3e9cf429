/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the verbs of `belay`. One file per verb; each exports one function and one popt table
 * through struct verb.
 *
 * Exit codes: enum cli_exit; with --wait the job's exit code. belay(1) lists them.
 */
#ifndef BELAY_CLI_CLI_H
#define BELAY_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/fold.h"
#include <popt.h>
#include <stdbool.h>
#include <stdio.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* belayd or the machine refused */
    CLI_USAGE = 2,  /* a bad command line or file, or a value that belayd refused */
    /* belay checkpoint commit returns BELAY_EXIT_CHECKPOINTED, 85 (ckpt/lib/belay.h) */
    CLI_INTERRUPTED = 130 /* a wait; the job goes on */
};

#define CLI_NO_WORDS "[OPTION...]"

/* --output of verbs that list */
#define CLI_OUTPUT_TAKES "wide|name|json|yaml|KEY,..."
#define CLI_OUTPUT_HELP                                                                            \
    "print more columns, names only, JSON, YAML, or these keys of the JSON as columns"

struct job_attribute;

struct verb {
    const char *name;
    const char *arguments; /* for usage: "SCRIPT [ARG...]"; CLI_NO_WORDS if words are refused */
    const char *summary;   /* one line */
    /* argv[0] is the verb. Returns the exit code. */
    int (*run)(int argc, const char **argv);
    /* in addition to --json and --help; may be NULL. vals from 1, no arg pointers */
    const struct poptOption *options;
    bool job_flags;       /* also takes the flags of jobs (flags/directives.h) */
    bool job_keys;        /* and words KEY=VALUE (flags/updates.h) */
    bool lists;           /* prints a list, and takes --output (list_table.h) */
    bool folds;           /* its answer is printed as lines that fit the terminal (fold.h) */
    const char *examples; /* command lines, each with a newline; shown by --help */
};

/* The verb's next flag of jobs after `a` (NULL: the first), without those that its own options
 * replace (--name of belay cron); NULL at the end. */
const struct job_attribute *cli_next_flag(const struct verb *v, const struct job_attribute *a);

extern const struct verb *const cli_verbs[]; /* NULL-terminated, in the order of `belay --help` */
/* The heading of the group of cli_verbs[i] there. */
const char *cli_verb_group(size_t i);

/* ---- arguments ---- */

#define CLI_JOB_FLAG 1000 /* popt val of the flag of job_attributes[i]: this + i */

struct cli_args {
    int json;          /* --json */
    char *output;      /* --output, unless it is json; NULL = a table */
    const char **rest; /* words that are not options */
    int n_rest;
    poptContext pc; /* owns rest */
    struct fold fold;
};

/* Handles one option; arg is NULL if it takes none. Returns 0, or CLI_USAGE after a report. */
typedef int (*cli_option_fn)(void *ctx, int val, const char *arg);

/* Parses argv. posix: options end at the first word. on_option may be NULL if the verb has no
 * options of its own and takes no flags of jobs. Reports errors. Returns 0, CLI_USAGE, or -1 if
 * help was printed. Call cli_args_deinit in every case. */
int cli_parse(const struct verb *v, int argc, const char **argv, bool posix,
    cli_option_fn on_option, void *ctx, struct cli_args *ret_args);
void cli_args_deinit(struct cli_args *a);

/* Print one line on stderr, after "belay: " or "belay: warning: ". */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define CLI_JOB_MAX 40 /* "42", or "42_7" */
/* The number of a job, or of a task such as 42_7. Returns CLI_OK, or after a report CLI_USAGE for
 * any other word, CLI_FAILED if there is no such task. */
int cli_job_id(const char *text, int64_t *ret_id);

/* ---- belayd ---- */

struct client; /* a blocking connection to belayd */

/* Finds belayd: BELAY_SERVER (https://, with BELAY_TOKEN_FILE and BELAY_CA_FILE, or what belay
 * login kept for it), else BELAY_SOCKET, else BELAY_HOME/belayd.sock (default
 * ~/.local/share/belay), else /run/belay/belayd.sock, else the server of the last belay login.
 * What belay login kept is renewed when it is about to end, before a call or in it. Does not
 * connect yet. */
int client_create(struct client **ret_client, struct err *e);
/* A client for the belayd at server (https://, without a trailing slash), with that token; NULL:
 * none. */
void client_create_at(
    const char *server, const char *ca_pem, const char *token, struct client **ret_client);
void client_destroy(struct client *c);
/* Waits on the client's loop. */
void client_wait(struct client *c, int64_t ms);

struct client_reply {
    int status;
    struct buf body;
    int64_t log_next;
    bool log_end;
    bool channel_end;
};

/* The path of a call, from a format with numbers and words of ours. Valid until the end of the
 * block. */
#define CLI_PATH_MAX 160
#define CLI_PATH(...) cli_path((char[CLI_PATH_MAX]){0}, __VA_ARGS__)
const char *cli_path(char out[CLI_PATH_MAX], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* One call. belayd's errors are returned in *e with their kind and text. body may be NULL. */
int client_call(struct client *c, const char *method, const char *path, const json_t *body,
    int64_t timeout_ms, struct client_reply *ret_reply, struct err *e);
/* POST of raw bytes. */
int client_call_bytes(struct client *c, const char *path, const void *p, size_t n,
    int64_t timeout_ms, struct client_reply *ret_reply, struct err *e);
void client_reply_deinit(struct client_reply *r);

/* client_call with the reply parsed as JSON. */
int client_json(struct client *c, const char *method, const char *path, const json_t *body,
    json_t **ret_value, struct err *e);

/* GET of all pages of a list whose pages are the newest entries before one: {name: the list,
 * "next": null}. The path has a query. */
int client_pages(
    struct client *c, const char *path, const char *name, json_t **ret_value, struct err *e);

/* GET path for a verb: returns the value, or NULL after printing the error. */
json_t *cli_get(const char *path);
json_t *cli_post(const char *path, const json_t *body);
/* For calls that may take longer than the 90 s of the two above. */
json_t *cli_post_long(const char *path, const json_t *body, int64_t timeout_ms);

/* Appends a parameter to the path of a request; the value is URL-encoded. */
void cli_add_parameter(struct buf *path, const char *name, const char *value);

/* Directory of a local belayd: BELAY_HOME or ~/.local/share/belay. The caller frees it. */
char *cli_home(void);

/* ---- printing ---- */

/* Texts from outside (belayd's replies: names, reasons, output of machines) go to a terminal only
 * through these functions, which keep them from moving its cursor, changing its settings or
 * beginning a line. Errors are clean already (base/err.h). The output of jobs and commands is
 * printed unchanged. */

/* Indented, with a newline. On a terminal all characters beyond ASCII are escaped, because some of
 * them control it. */
void cli_print_json(const json_t *v);

/* A table: columns in the given order. On a terminal it is made to fit (table.c), on a pipe it is
 * complete. Words for states are coloured in columns STATE and END, as --color says. */
struct table;
enum {
    TABLE_RIGHT = 1,    /* aligned as numbers are; never shortened */
    TABLE_EXTRA = 2,    /* left out first where the terminal is too narrow */
    TABLE_SENTENCE = 4, /* goes on below */
};
struct table *table_create(void);
void table_column(struct table *t, const char *name, unsigned form); /* before the first row */
void table_row(struct table *t);
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(struct table *t); /* and frees t */
void table_print_to(struct table *t, FILE *out);
/* For so many columns of a terminal; 0: complete. */
void table_print_in(struct table *t, FILE *out, int columns);
void table_drop(struct table *t); /* frees t unprinted */

/* For an empty table, which prints nothing: prints the text on stderr if standard output is a
 * terminal. */
void cli_print_empty(const char *text);

/* "saved 65 %", "12 % more"; on_demand_uusd > 0. */
const char *cli_saved(int64_t cost_uusd, int64_t on_demand_uusd, char *mem, size_t size);

/* The string with every character that a terminal could act on replaced by '?', in v too. NULL if v
 * is not a string. Borrowed. */
const char *cli_string(const json_t *v);
/* Prints a text of several lines, each cleaned in the same way and indented by that many blanks. */
void cli_print_lines(const char *text, int indent);
/* JSON members for people: "-" if null or absent. Borrowed or written to mem. */
const char *cli_text(const json_t *o, const char *key);
/* Whether the word asks a verb to remove something: "remove", or "rm" or "delete", which mean the
 * same everywhere. */
bool cli_is_remove(const char *word);
#define CLI_NAME_MAX 256
/* The name of a JSON member, cleaned in the same way; cut at CLI_NAME_MAX - 1 bytes. */
const char *cli_name(const char *name, char mem[CLI_NAME_MAX]);
/* Adds a list's words ("a,b") or an object's names and numbers ("lego:4,shmem:1"); nothing for any
 * other value. */
void cli_words(const json_t *v, struct buf *out);
int64_t cli_int(const json_t *o, const char *key, int64_t fallback);
struct wall cli_time(const json_t *o, const char *key); /* WALL_NONE if absent or not a time */
/* In this machine's time zone, or in UTC with --utc. full: "2026-11-27 10:42:03"; else "10:42" for
 * a time of today and "2026-11-27 10:42" for any other. "-" for WALL_NONE. */
#define CLI_LOCAL_MAX 32
const char *cli_local(struct wall at, bool full, char mem[CLI_LOCAL_MAX]);
/* cli_local of a JSON member, full. */
const char *cli_when(const json_t *o, const char *key, char mem[CLI_LOCAL_MAX]);
/* "3m10s" since an ISO time */
const char *cli_ago(const json_t *o, const char *key, char *mem, size_t size);
const char *cli_duration(int64_t ms, char *mem, size_t size);
const char *cli_usd(int64_t uusd, char *mem, size_t size);
/* "1 cpu", "2 cpus" */
#define CLI_COUNT_MAX 48
const char *cli_count(int64_t n, const char *one, char mem[CLI_COUNT_MAX]);

/* ---- jobs ---- */

/* Waits for the job's end; prints its output meanwhile if follow. *ret_exit is the job's exit code.
 */
int cli_wait_job(struct client *c, int64_t id, bool follow, int *ret_exit, struct err *e);

/* Returns the job's events after *after as a new array, once there are any or after 20 s; advances
 * *after. Survives a restart of belayd. */
int cli_next_events(
    struct client *c, int64_t id, int64_t *after, json_t **ret_events, struct err *e);
/* The complete reply, {"events": [...], "state": "running"...}, after at most wait_ms (<= 20000).
 */
int cli_next_page(struct client *c, int64_t id, int64_t wait_ms, int64_t *after, json_t **ret_page,
    struct err *e);

/* A part of a job's log: starts at the latest of these positions. */
struct log_part {
    int64_t rank, attempt; /* attempt 0 = all attempts in sequence */
    int64_t offset;        /* negative: before the end */
    struct wall since;     /* output that belayd received at or after this time; may be WALL_NONE */
    int64_t tail;          /* lines; 0 = all */
};

/* The path of the request: the first one if next is negative, else its continuation from that
 * offset. The caller frees it. */
char *cli_log_path(int64_t id, const struct log_part *part, int64_t next, int64_t wait_ms);

/* Prints the log; follow: until the job (or that attempt) has ended. */
int cli_print_logs(
    struct client *c, int64_t id, const struct log_part *part, bool follow, struct err *e);

#endif
