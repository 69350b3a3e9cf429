/* SPDX-License-Identifier: Apache-2.0
 *
 * $filter of Azure's listings, as far as supported here: terms joined by `and`, each of them FIELD
 * eq 'TEXT', FIELD ne 'TEXT' or contains(FIELD, 'TEXT'). A quote inside TEXT is doubled.
 */
#ifndef BELAY_EMULATOR_ARM_FILTER_H
#define BELAY_EMULATOR_ARM_FILTER_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define ARM_FILTER_TERMS_MAX 16
#define ARM_FILTER_TEXT_MAX 512

enum arm_filter_test { FILTER_EQ, FILTER_NE, FILTER_CONTAINS };

struct arm_filter_term {
    int field; /* index into the names */
    enum arm_filter_test test;
    char text[ARM_FILTER_TEXT_MAX];
};

struct arm_filter {
    struct arm_filter_term terms[ARM_FILTER_TERMS_MAX];
    size_t n;
};

/* text may be NULL or "": no terms. names: the known fields, NULL-terminated. ERR_INVALID. */
int arm_filter_parse(
    const char *text, const char *const *names, struct arm_filter *ret_filter, struct err *e);

/* Whether a field's value passes the term. Values are compared verbatim. */
bool arm_filter_passes(const struct arm_filter_term *t, const char *value);

#endif
