/* SPDX-License-Identifier: Apache-2.0
 *
 * Random options of jobs, from the table of job/attributes.h (see options.c).
 */
#ifndef BELAY_SIMTEST_OPTIONS_H
#define BELAY_SIMTEST_OPTIONS_H

#include "job/member.h"

struct changes;
struct wire_desired_attempt;
struct world;

/* Sets options of s that have no rule in users.c, occasionally, each to a value of its range. */
void options_random(struct world *w, struct job_spec *s);
/* Fields of such options for an update, as bits; usually none. */
uint64_t options_fields(struct world *w);
/* A document, or a merge patch of one, with options that are only stored: JSON, which the caller
 * frees. NULL: none. */
char *options_document(struct world *w);

/* Checks that what is loaded after a restart is what was committed. */
void options_committed(struct world *w, const struct changes *c);
void options_loaded(struct world *w);
/* Checks that what an agent receives of a job to start is what was committed. */
void options_sent(struct world *w, const struct wire_desired_attempt *d);

#endif
