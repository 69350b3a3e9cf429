/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by `belay submit` and `belay run`: turns a script and flags into a job, submits it, and
 * waits for it.
 */
#ifndef BELAY_CLI_SUBMISSION_H
#define BELAY_CLI_SUBMISSION_H

#include "cli/cli.h"

struct submission {
    json_t *spec; /* in the form of docs/reference/api.md; owned */
    /* array of [name, value or null] from the command line, applied after the script's own; owned
     */
    json_t *flags;
    json_t *written; /* how its options were written (directives_take_written); owned */
    bool wait, follow, json, parsable;
    bool test_only; /* do not submit: print an estimate */
    /* the Slurm name ("sbatch") through which it is submitted, used in messages; NULL for our own
     * verbs */
    const char *slurm;
    const char *default_output; /* with slurm, unless script or flags name a file; may be NULL */
    bool cancel_on_interrupt;   /* with wait: SIGINT, SIGTERM and SIGHUP cancel the job */
    bool quiet;                 /* do not print the number */
    bool by_schedule;           /* for a cron entry: submitted repeatedly */
};

void submission_init(struct submission *s);
void submission_deinit(struct submission *s);

/* Records a flag of the command line by name; arg may be NULL. submission_build evaluates it. */
void submission_add_named(struct submission *s, const char *name, const char *arg);

/* Records a job flag of the command line (val from cli_parse). Returns 0 or CLI_USAGE. */
int submission_add_flag(struct submission *s, int val, const char *arg);

/* Fills the specification: script text, its directives, then the flags. name_hint: default name of
 * the job. ERR_INVALID. */
int submission_build(struct submission *s, const char *file, const char *script, size_t n,
    const char *name_hint, const char **args, int n_args, struct err *e);

/* Sends data that belongs to the specification, such as the working directory with --workdir
 * upload, and completes it. c may be NULL: opens a connection. Errors are those of workdir_upload.
 */
int submission_upload(struct submission *s, struct client *c, struct err *e);

/* Reports text in the style of the submitting program. */
void submission_error(const struct submission *s, const char *text);

/* submission_build for the words of a command line, SCRIPT [ARG...] (`-`, or no words if standard
 * input is not a terminal: the script is read from standard input), or for a shell command (wrap,
 * may be NULL). Returns 0, or the exit code (CLI_USAGE, with slurm CLI_FAILED) after a report that
 * names the verb. */
int submission_load(
    struct submission *s, const char *verb, const char *wrap, const char **words, int n_words);

/* Submits, prints the number, and waits if requested. Returns the exit code. */
int submission_send(struct submission *s);

#endif
