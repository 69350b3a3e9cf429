/* SPDX-License-Identifier: Apache-2.0
 *
 * Features of nodes, and what a job asks of them, as Slurm's --constraint writes it:
 *
 *     a100      a100&ib      intel|amd      (intel|amd)&avx512&(ib|roce)
 *
 * & and | side by side need parentheses, since Slurm reads them from left to right and people do
 * not. There is no `!`, no
 * number of nodes (`a*2`) and no `[a|b]`.
 *
 * A set of features is a text, ",a100,ib,": each between commas, in any order; "" is the empty one.
 */
#ifndef BELAY_JOB_FEATURE_H
#define BELAY_JOB_FEATURE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEATURE_MAX 64        /* a name, with its NUL: letters, digits and . _ - + : */
#define FEATURES_TEXT_MAX 256 /* a set that people write */
#define FEATURES_ALL_MAX 1024 /* two such sets, and what is added to them */
#define CONSTRAINT_TEXT_MAX 256
#define CONSTRAINT_DEPTH_MAX 16 /* parentheses in parentheses */

struct constraint {
    /* without blanks and parentheses around one name; "": nothing is asked */
    char text[CONSTRAINT_TEXT_MAX];
    /* NUL between them; in the order in which they stand in text */
    char names[CONSTRAINT_TEXT_MAX + 2];
    size_t n_names;
    /* in postfix order: where a name begins, or one of two numbers above */
    uint8_t program[CONSTRAINT_TEXT_MAX];
    size_t n_program;
};

bool feature_is_name(const char *s);
bool features_has(const char *set, const char *name);
/* Adds it unless it is there; false, and nothing is added: no room in size bytes, or it is no
 * feature's name. */
bool features_add(char *set, size_t size, const char *name);
/* Adds all of another set, as far as there is room. */
void features_add_all(char *set, size_t size, const char *other);
/* The name at *pos into out, and *pos goes on behind it; false: there are no more. *pos is 0 at
 * first. */
bool features_next(const char *set, size_t *pos, char out[FEATURE_MAX]);

/* ERR_INVALID names the place, counted from 1, and what was expected there. "" asks for nothing. */
int constraint_parse(const char *text, struct constraint *ret_constraint, struct err *e);
bool constraint_holds(const struct constraint *c, const char *set);
/* The i-th name, or NULL. */
const char *constraint_name(const struct constraint *c, size_t i);

#endif
