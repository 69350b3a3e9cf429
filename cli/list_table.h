/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that fetch one list and print it as a table.
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
        COLUMN_DURATION,
        COLUMN_USD,
        COLUMN_YES,
        COLUMN_REAL,
        COLUMN_WORDS, /* a list, or names and numbers */
        COLUMN_OF,    /* a number followed by its maximum from key max_KEY: 3/10, 3/- */
        COLUMN_CPUS_USED,
        COLUMN_MEMORY_USED /* of a node: used by its tasks, and total: 2.3/8, 11.5/64 GiB */
    } kind;
};

/* Prints the rows as a table with these columns (ended by title NULL). */
void list_table(const json_t *rows, const struct list_column *columns);
void list_table_to(const json_t *rows, const struct list_column *columns, FILE *out);

/* GET path; prints member `name` of the reply with these columns (ended by title NULL). */
int list_print(const char *path, const char *name, const struct list_column *columns, bool json);

/* Columns shared by several verbs. */
extern const struct list_column node_columns[], offer_columns[];

/* A verb with CLI_NO_WORDS that only lists, by list_print. Returns the exit code. */
int list_verb(const struct verb *verb, const char *path, const char *key,
    const struct list_column *columns, int argc, const char **argv);

#endif
