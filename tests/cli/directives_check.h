/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a script's directives: the job's spec as JSON, warnings, or a refusal.
 */
#ifndef BELAY_TESTS_CLI_DIRECTIVES_CHECK_H
#define BELAY_TESTS_CLI_DIRECTIVES_CHECK_H

#include "base/buf.h"
#include "base/err.h"

struct result {
    int rc;
    struct err e;
    char *spec; /* JSON */
    struct buf warnings;
};

/* n bytes, which may include NUL. The caller calls result_deinit. */
struct result result_of(const char *script, size_t n);
void result_deinit(struct result *r);
/* As directive_warn_fn; ctx is a struct buf. */
void result_add_warning(void *ctx, const char *text);

/* Each fails the test unless the script has exactly that spec and no warnings; */
void check_spec(const char *script, const char *expected);
/* the same, submitted by a cron entry; */
void check_repeated(const char *script, const char *expected);
/* that spec, and a warning that contains this text; */
void check_warned(const char *script, const char *expected, const char *warning);
/* or is refused with an error that contains expected. */
void check_refused(const char *script, const char *expected);

#endif
