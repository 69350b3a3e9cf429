/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node_fault.h"

#include "base/log.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

void node_fault_set(struct node_fault *f, struct wall now, const char *why)
{
    char at[TIME_ISO_MAX];
    time_format_iso(now, at);
    str_shorten(f->text, sizeof(f->text) - TIME_ISO_MAX - 3, why);
    size_t n = strlen(f->text);
    snprintf(f->text + n, sizeof(f->text) - n, " (%s)", at);
    log_error("the node is faulty", log_s("why", why));
}
