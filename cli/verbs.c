/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

#include <stddef.h>

#define VERB_ADDRESS(name) &verb_##name,

const struct verb *const cli_verbs[] = {VERBS(VERB_ADDRESS) NULL};
