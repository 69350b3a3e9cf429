/* SPDX-License-Identifier: Apache-2.0
 *
 * $filter of Azure's listings, as far as they are used here: terms joined by `and`, each of them
 * FIELD eq 'TEXT', FIELD ne 'TEXT' or contains(FIELD, 'TEXT'). A quote within TEXT is doubled.
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

/* text NULL or "": no terms. names: the fields that there are, NULL-terminated. ERR_INVALID. */
int arm_filter_parse(
    const char *text, const char *const *names, struct arm_filter *ret_filter, struct err *e);

/* Does this value of that field pass the term? Values are compared as they are written. */
bool arm_filter_passes(const struct arm_filter_term *t, const char *value);

#endif
