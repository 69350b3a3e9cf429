/* SPDX-License-Identifier: Apache-2.0
 *
 * Features of nodes, and a job's constraints on them, in the syntax of Slurm's --constraint:
 *
 *     a100      a100&ib      intel|amd      (intel|amd)&avx512&(ib|roce)
 *
 * Mixing & and | requires parentheses, since Slurm evaluates them from left to right and people
 * expect precedence. `!`, node counts (`a*2`) and `[a|b]` are not supported.
 *
 * A set of features is a text, ",a100,ib,": each between commas, in any order; "" is the empty set.
 */
#ifndef BELAY_JOB_FEATURE_H
#define BELAY_JOB_FEATURE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEATURE_MAX 64        /* a name, including its NUL: letters, digits and . _ - + : */
#define FEATURES_TEXT_MAX 256 /* a set written by a person */
#define FEATURES_ALL_MAX 1024 /* two such sets, and what is added to them */
#define CONSTRAINT_TEXT_MAX 256
#define CONSTRAINT_DEPTH_MAX 16 /* nesting of parentheses */

struct constraint {
    /* without blanks and redundant parentheses; "" for no constraint */
    char text[CONSTRAINT_TEXT_MAX];
    /* separated by NUL, in the order of text */
    char names[CONSTRAINT_TEXT_MAX + 2];
    size_t n_names;
    /* postfix: the offset of a name, or one of two operators */
    uint8_t program[CONSTRAINT_TEXT_MAX];
    size_t n_program;
};

bool feature_is_name(const char *s);
/* ERR_INVALID, with what a name is, unless feature_is_name. */
int feature_check(const char *name, struct err *e);
bool features_has(const char *set, const char *name);
/* Adds a feature unless it is there. False, with nothing added, if size bytes are not enough or the
 * name is invalid. */
bool features_add(char *set, size_t size, const char *name);
/* Adds another set, as far as there is space. */
void features_add_all(char *set, size_t size, const char *other);
/* ERR_INVALID unless the set has the form above, in less than FEATURES_TEXT_MAX bytes, with valid
 * names that differ. The outer commas may be missing. */
int features_check(const char *set, struct err *e);
/* Copies the name at *pos into out and advances *pos; false at the end. *pos starts at 0. */
bool features_next(const char *set, size_t *pos, char out[FEATURE_MAX]);

/* ERR_INVALID gives the position, counted from 1, and what was expected there. "" is no constraint.
 */
int constraint_parse(const char *text, struct constraint *ret_constraint, struct err *e);
bool constraint_matches(const struct constraint *c, const char *set);
/* The i-th name, or NULL. */
const char *constraint_name(const struct constraint *c, size_t i);

#endif
