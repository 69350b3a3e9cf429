/* SPDX-License-Identifier: Apache-2.0
 *
 * The members of struct job_spec as the rows of job_attributes describe them: read, set, compared
 * and checked without knowing which option it is. All functions but job_spec_check expect a row
 * whose member_type is not JOB_MEMBER_NONE. Pure.
 */
#ifndef BELAY_JOB_MEMBER_H
#define BELAY_JOB_MEMBER_H

#include "job/attributes.h"
#include "job/spec.h"

/* The rows of job_attributes, then of job_stored; NULL after the last. */
const struct job_attribute *job_member_row(size_t i);

/* Whether the value is a number: stored as INT32, INT64, WORD (its index) or MOMENT (milliseconds
 * since 1970). */
bool job_member_is_number(const struct job_attribute *a);
/* The value of such a member. */
int64_t job_member_number(const struct job_attribute *a, const struct job_spec *s);
/* Sets it; n must fit its size. */
void job_member_set_number(const struct job_attribute *a, struct job_spec *s, int64_t n);

/* The value of a member stored as BOOL or NOT, as its option says it. */
bool job_member_truth(const struct job_attribute *a, const struct job_spec *s);
void job_member_set_truth(const struct job_attribute *a, struct job_spec *s, bool is_true);

/* The value of a member stored as TEXT. */
const char *job_member_text(const struct job_attribute *a, const struct job_spec *s);
/* Sets it, and zeroes the rest, so that equal texts are equal bytes. The text must fit. */
void job_member_set_text(const struct job_attribute *a, struct job_spec *s, const char *text);

bool job_member_is_equal(
    const struct job_attribute *a, const struct job_spec *s, const struct job_spec *other);
bool job_member_is_default(const struct job_attribute *a, const struct job_spec *s);

/* Copies what agents get: the members whose row has a key in messages (`wire`). The others are
 * zero. */
void job_spec_for_agent(const struct job_spec *s, struct job_spec *ret_spec);

/* Checks each number against the range or words of its row; the default is valid, too. Options with
 * JOB_READ_APART have rules of their own, and are not checked. A member that is equal in `was` is
 * not checked either; was may be NULL. ERR_INVALID: the option, its range and the value. */
int job_spec_check(const struct job_spec *s, const struct job_spec *was, struct err *e);

#endif
