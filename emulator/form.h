/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of a Query API call: application/x-www-form-urlencoded text, decoded. Parameters
 * are marked when they are read, so that unknown ones can be refused by name.
 */
#ifndef BELAY_EMULATOR_FORM_H
#define BELAY_EMULATOR_FORM_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define FORM_BYTES_MAX (256u * 1024)
#define FORM_PARAMS_MAX 4000

struct form_param {
    char *name, *value;
    bool is_used;
};

struct form {
    struct form_param *list; /* sorted by name */
    size_t n;
};

/* ERR_INVALID: malformed escapes, not UTF-8, a duplicate name, too many. */
int form_parse(const char *text, size_t n, struct form *ret_form, struct err *e);
void form_deinit(struct form *f);

/* The value, or NULL; marks it as used. Borrowed. */
const char *form_get(struct form *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Marks every parameter named `prefix` or starting with "prefix." as used; true if there was one.
 */
bool form_use_all(struct form *f, const char *prefix);

/* The name of an unused parameter, or NULL. */
const char *form_unused(const struct form *f);

/* SHA-256 in hex (65 bytes) of all names and values except those in `except` (NULL-terminated). */
void form_fingerprint(const struct form *f, const char *const *except, char *out);

#endif
