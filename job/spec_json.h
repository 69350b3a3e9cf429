/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's spec as JSON in a submit, in replies and in the database, by iterating over
 * job_attributes. A member has the name of its option ("cpus"; "checkpoint.keep" is keep in the
 * object checkpoint). A missing or null member stands for the default. Pure.
 *
 * job_spec_read checks a submit against the ranges of the options, so stored values have been
 * checked.
 */
#ifndef BELAY_JOB_SPEC_JSON_H
#define BELAY_JOB_SPEC_JSON_H

#include "base/json.h"
#include "job/attributes.h"
#include "job/spec.h"

/* Reads options from r's object, except those with JOB_READ_APART. prefix selects the options:
 * "checkpoint." those whose names begin with it, "" those without a dot. Options that the object
 * does not have stay unchanged in s. The caller finishes r. */
void job_spec_read(struct json_reader *r, const char *prefix, struct job_spec *s);

/* Adds the options with JOB_SHOWN, JOB_SHOWN_OR_NULL and JOB_SHOWN_AS_TIME to o. */
void job_spec_show(const struct job_spec *s, json_t *o);

/* The options that differ from job_spec_default, except rows with a mask in `without`. NULL: none
 * differs. */
json_t *job_spec_to_json(const struct job_spec *s, unsigned without);
/* The reverse; options that v does not have get their default. Checks types and words, but not
 * ranges, because a range may have changed since v was written. ERR_INVALID, with s unchanged: an
 * unknown name or an impossible value. */
int job_spec_from_json(const json_t *v, struct job_spec *ret_spec, struct err *e);

#endif
