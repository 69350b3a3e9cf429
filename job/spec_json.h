/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's spec as JSON, by walking job_attributes: of a submit, shown, and stored. A member is an
 * option's name there ("cpus"; "checkpoint.keep" is keep of the object checkpoint), and one that is
 * missing or null is the default. Pure.
 *
 * What a submit asks for is held against the options' ranges (job_spec_read); what is stored was.
 */
#ifndef BELAY_JOB_SPEC_JSON_H
#define BELAY_JOB_SPEC_JSON_H

#include "base/json.h"
#include "job/attributes.h"
#include "job/spec.h"

/* Reads the options that r's object may name, but those with JOB_READ_APART: it stands for those of
 * names that begin with prefix, "checkpoint."; "": for those without a dot. What it does not name
 * stays as it is in s. The caller finishes r. */
void job_spec_read(struct json_reader *r, const char *prefix, struct job_spec *s);

/* Adds to o what is shown of it (JOB_SHOWN and the like). */
void job_spec_show(const struct job_spec *s, json_t *o);

/* All that differs from job_spec_default, but of rows with a mask of `without`. NULL: nothing
 * does. */
json_t *job_spec_to_json(const struct job_spec *s, unsigned without);
/* The reverse: what v does not name is the default. Values are held against their types and words,
 * not against the ranges of the options, which may be others than when it was written.
 * ERR_INVALID, s is unchanged: a name that is unknown, a value that cannot be. */
int job_spec_from_json(const json_t *v, struct job_spec *ret_spec, struct err *e);

#endif
