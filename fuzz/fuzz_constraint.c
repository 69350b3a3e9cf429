/* SPDX-License-Identifier: Apache-2.0
 *
 * Constraints of jobs, and sets and counts of named resources: formatting what was parsed and
 * parsing it again gives the same.
 */
#include "job/counts.h"
#include "job/feature.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_constraint(const char *text)
{
    struct constraint c, again;
    struct err e = {0};
    char all[FEATURES_ALL_MAX] = "";
    int rc = constraint_parse(text, &c, &e);
    if (rc != 0) {
        check_error(rc, &e);
        return;
    }
    assert(constraint_parse(c.text, &again, &e) == 0 && str_eq(c.text, again.text));
    assert(again.n_program == c.n_program && memcmp(again.program, c.program, c.n_program) == 0);
    for (size_t i = 0; constraint_name(&c, i); i++) {
        assert(feature_is_name(constraint_name(&c, i)));
        features_add(all, sizeof all, constraint_name(&c, i));
    }
    assert(constraint_matches(&c, all) && (c.n_names > 0) != constraint_matches(&c, ""));
}

static void check_counts(const char *text)
{
    struct counts c, again;
    struct err e = {0};
    char out[COUNTS_TEXT_MAX], out_second[COUNTS_TEXT_MAX];
    int rc = counts_parse(text, &c, &e);
    if (rc != 0) {
        check_error(rc, &e);
        return;
    }
    counts_format(&c, out);
    assert(
        counts_parse(out, &again, &e) == 0 && counts_cover(&c, &again) && counts_cover(&again, &c));
    counts_format(&again, out_second);
    assert(str_eq(out, out_second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    check_constraint(text);
    check_counts(text);
    free(text);
    return 0;
}
