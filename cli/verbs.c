/* SPDX-License-Identifier: Apache-2.0
 *
 * See verbs.h, where a verb is added.
 */
#include "cli/verbs.h"

#include "base/str.h"
#include "cli/flags/directives.h"
#include "job/attributes.h"

#define VERB_ADDRESS(group, name) &verb_##name,
#define VERB_GROUP(group, name) GROUP_##group,

const struct verb *const cli_verbs[] = {VERBS(VERB_ADDRESS) NULL};

const char *cli_verb_group(size_t i)
{
    enum group { GROUP_MACHINE, GROUP_JOBS, GROUP_CLUSTER, GROUP_MONEY, GROUP_ADMIN };
    static const enum group groups[] = {VERBS(VERB_GROUP)};
    static const char *const titles[] = {[GROUP_MACHINE] = "This machine",
        [GROUP_JOBS] = "Jobs",
        [GROUP_CLUSTER] = "Cluster and limits",
        [GROUP_MONEY] = "Money",
        [GROUP_ADMIN] = "Administration and tools"};
    return titles[groups[i]];
}

static bool has_option(const struct verb *v, const char *name)
{
    for (const struct poptOption *o = v->options; o && o->longName; o++)
        if (str_eq(o->longName, name))
            return true;
    return false;
}

const struct job_attribute *cli_next_flag(const struct verb *v, const struct job_attribute *a)
{
    if (!v->job_flags)
        return NULL;
    do
        a = directives_next(a);
    while (a && has_option(v, a->flag));
    return a;
}
