/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that fetch one list and print it: as a table, JSON, YAML, names or chosen columns.
 */
#ifndef BELAY_CLI_LIST_TABLE_H
#define BELAY_CLI_LIST_TABLE_H

#include "cli/cli.h"

struct list_column {
    const char *title;
    const char *key;
    enum {
        COLUMN_TEXT,
        COLUMN_INT,
        COLUMN_USD_H,
        COLUMN_AGO,
        COLUMN_WHEN, /* a time, in this machine's zone or as --utc says */
        COLUMN_DURATION,
        COLUMN_USD,
        COLUMN_YES,
        COLUMN_REAL,
        COLUMN_WORDS, /* a list, or names and numbers */
        COLUMN_OF,    /* a number followed by its maximum from key max_KEY: 3/10, 3/- */
        COLUMN_CPUS_USED,
        COLUMN_MEMORY_USED, /* of a node: used by its tasks, and total: 2.3/8, 11.5/64 GiB */
        COLUMN_JOB_STATE,   /* of a job; of one that has ended: how */
        COLUMN_PROGRESS,    /* of a job: steps done, and in all */
        COLUMN_WHY          /* of a job: the text of its reason */
    } kind;
    bool is_wide;  /* only with --output wide */
    bool is_name;  /* what --output name prints; the first column if none has it */
    bool is_right; /* a text that is aligned as numbers are */
    bool is_extra; /* left out first where the terminal is too narrow */
    bool is_sentence;
    const char *before; /* of a text: the key of a text that precedes it, with ": "; may be NULL */
};

/* Prints the rows as a table with these columns (ended by title NULL). */
void list_table(const json_t *rows, const struct list_column *columns);
void list_table_to(const json_t *rows, const struct list_column *columns, FILE *out);

/* Prints member `name` of the reply as --json and --output of the verb say; as a table with these
 * columns (ended by title NULL) by default. Returns the exit code. */
int list_output(const struct cli_args *a, const json_t *reply, const char *name,
    const struct list_column *columns);

/* GET path; prints the reply by list_output. */
int list_print(const struct cli_args *a, const char *path, const char *name,
    const struct list_column *columns);

/* Prints a reply of that call, which it takes; nothing and a failure for NULL. */
int list_print_reply(
    const struct cli_args *a, json_t *v, const char *name, const struct list_column *columns);

/* Columns shared by several verbs. */
extern const struct list_column node_columns[], offer_columns[];

/* A verb with CLI_NO_WORDS that only lists, by list_print. Returns the exit code. */
int list_verb(const struct verb *verb, const char *path, const char *key,
    const struct list_column *columns, int argc, const char **argv);

#endif
