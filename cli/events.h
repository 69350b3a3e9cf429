/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a job, for people: what each kind is called in English, and the lines of `belay
 * show`.
 */
#ifndef BELAY_CLI_EVENTS_H
#define BELAY_CLI_EVENTS_H

#include "base/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_name {
    const char *kind;  /* stable, of the API */
    const char *words; /* of at most EVENT_WORDS_MAX bytes */
};
#define EVENT_WORDS_MAX 19

extern const struct event_name event_names[]; /* every kind that belayd has */
extern const size_t event_names_count;

/* The kind itself where it has no words: belayd may be newer. */
const char *event_words(const char *kind);

/* All events of the job, oldest first: a new array, or NULL after printing the error. */
json_t *events_get(int64_t job);

/* The last events of the job, with how to see the earlier ones. False after printing an error. */
bool events_print_last(int64_t job);

/* One line each, below a heading. */
void events_print(const json_t *events);

#endif
