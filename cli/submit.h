/* SPDX-License-Identifier: Apache-2.0
 *
 * What `belay submit` and `belay run` share: a script and flags to a job, submitted, and waited
 * for.
 */
#ifndef BELAY_CLI_SUBMIT_H
#define BELAY_CLI_SUBMIT_H

#include "cli/cli.h"

struct submission {
    json_t *spec; /* as docs/reference/api.md; owned */
    /* array of [name, value or null] from the command line, applied after the script's own;
     * owned */
    json_t *flags;
    bool wait, follow, json, parsable;
    bool test_only; /* nothing is submitted: what would become of it is told */
    /* comes through this one of Slurm's names ("sbatch"), which its words begin with; NULL: ours */
    const char *slurm;
    const char *default_output; /* with slurm, unless script or flags name a file; NULL: none */
    bool cancel_on_interrupt;   /* with wait: SIGINT, SIGTERM and SIGHUP cancel the job */
    bool quiet;                 /* says nothing of the number */
    bool by_schedule;           /* of a cron entry: submitted again and again */
};

void submission_init(struct submission *s);
void submission_deinit(struct submission *s);

/* Notes a flag of the command line by its name; arg NULL: none. It is looked at by
 * submission_build. */
void submission_add_named(struct submission *s, const char *name, const char *arg);

/* Notes a job flag of the command line (val as from cli_parse). 0 or CLI_USAGE. */
int submission_add_flag(struct submission *s, int val, const char *arg);

/* Fills the specification: script text, its directives, then the flags. name_hint: the job's name
 * unless given. ERR_INVALID. */
int submission_build(struct submission *s, const char *file, const char *script, size_t n,
    const char *name_hint, const char **args, int n_args, struct err *e);

/* Sends what belongs to the specification and is not in it, its working directory with --workdir
 * upload; it is complete then. c NULL: with a connection of its own. What workdir_upload tells. */
int submission_bring(struct submission *s, struct client *c, struct err *e);

/* Reports text as whoever submits does. */
void submission_error(const struct submission *s, const char *text);

/* The same for the words of a command line, SCRIPT [ARG...] (`-`, or nothing while standard input
 * is no terminal: a script from there), or for a shell command (wrap; else NULL). 0, or the exit
 * code (CLI_USAGE, with slurm CLI_FAILED) after a report that names the verb. */
int submission_load(
    struct submission *s, const char *verb, const char *wrap, const char **words, int n_words);

/* Submits, prints the number, waits if asked. Returns the exit code. */
int submission_send(struct submission *s);

#endif
