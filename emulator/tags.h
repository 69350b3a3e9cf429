/* SPDX-License-Identifier: Apache-2.0
 *
 * The tags of a machine, a volume or a launch template: texts by unique keys, in the order in which
 * they were set. Each provider has its own rules for what may be a tag, which its front checks.
 */
#ifndef BELAY_EMULATOR_TAGS_H
#define BELAY_EMULATOR_TAGS_H

#include "base/json.h"
#include <stddef.h>

struct tag {
    char *key, *value;
};

struct tags {
    struct tag *list;
    size_t n;
};

void tags_deinit(struct tags *t);
/* replaces; the caller enforces INSTANCE_TAGS_MAX */
void tags_set(struct tags *t, const char *key, const char *value);
/* Sets each of the others. */
void tags_set_all(struct tags *t, const struct tags *others);
const char *tags_get(const struct tags *t, const char *key); /* NULL if absent */

/* New references: {KEY: VALUE, ...}, and [{key_name: KEY, "value": VALUE}, ...]. */
json_t *tags_json(const struct tags *t);
json_t *tags_json_list(const struct tags *t, const char *key_name);

#endif
