/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags/foreign.h"

#include "base/str.h"

const struct foreign foreign_flags[] = {
    {"batch", 0, "FEATURE", FOREIGN_REFUSED},
    {"bb", 0, "SPEC", FOREIGN_REFUSED},
    {"bbf", 0, "FILE", FOREIGN_REFUSED},
    {"cluster-constraint", 0, "LIST", FOREIGN_REFUSED},
    {"clusters", 'M', "NAMES", FOREIGN_REFUSED},
    {"container", 0, "DIR", FOREIGN_REFUSED},
    {"export-file", 0, "FILE", FOREIGN_REFUSED},
    {"gid", 0, "GROUP", FOREIGN_REFUSED},
    {"gpus-per-socket", 0, "N", FOREIGN_REFUSED},
    {"priority", 0, "N", FOREIGN_REFUSED},
    {"reboot", 0, NULL, FOREIGN_REFUSED},
    {"reservation", 0, "NAMES", FOREIGN_REFUSED},
    {"tmp", 0, "SIZE", FOREIGN_REFUSED},
    {"uid", 0, "USER", FOREIGN_REFUSED},
    {"wait", 'W', NULL, FOREIGN_REFUSED},
    {"wrap", 0, "COMMAND", FOREIGN_REFUSED},
    {"contiguous", 0, NULL, FOREIGN_WARNED},
    {"core-spec", 'S', "N", FOREIGN_WARNED},
    {"cores-per-socket", 0, "N", FOREIGN_WARNED},
    {"delay-boot", 0, "MINUTES", FOREIGN_WARNED},
    {"extra-node-info", 'B', "N", FOREIGN_WARNED},
    {"no-kill", 'k', "?OFF", FOREIGN_WARNED},
    {"overcommit", 'O', NULL, FOREIGN_WARNED},
    {"oversubscribe", 's', NULL, FOREIGN_WARNED},
    {"prefer", 0, "FEATURES", FOREIGN_WARNED},
    {"sockets-per-node", 0, "N", FOREIGN_WARNED},
    {"spread-job", 0, NULL, FOREIGN_WARNED},
    {"switches", 0, "N", FOREIGN_WARNED},
    {"thread-spec", 0, "N", FOREIGN_WARNED},
    {"time-min", 0, "LIMIT", FOREIGN_WARNED},
    {"use-min-nodes", 0, NULL, FOREIGN_WARNED},
    {"acctg-freq", 0, "SECONDS", FOREIGN_IGNORED},
    {"cpu-freq", 0, "MHZ", FOREIGN_IGNORED},
    {"distribution", 'm', "HOW", FOREIGN_IGNORED},
    {"get-user-env", 0, "?HOW", FOREIGN_WARNED},
    {"gpu-bind", 0, "HOW", FOREIGN_IGNORED},
    {"gpu-freq", 0, "MHZ", FOREIGN_IGNORED},
    {"gres-flags", 0, "FLAGS", FOREIGN_IGNORED},
    {"hint", 0, "WHAT", FOREIGN_IGNORED},
    {"ignore-pbs", 0, NULL, FOREIGN_IGNORED},
    {"mcs-label", 0, "LABEL", FOREIGN_IGNORED},
    {"mem-bind", 0, "HOW", FOREIGN_IGNORED},
    {"network", 0, "HOW", FOREIGN_IGNORED},
    {"ntasks-per-core", 0, "N", FOREIGN_IGNORED},
    {"ntasks-per-socket", 0, "N", FOREIGN_IGNORED},
    {"power", 0, "FLAGS", FOREIGN_IGNORED},
    {"profile", 0, "WHAT", FOREIGN_IGNORED},
    {"propagate", 0, "?LIMITS", FOREIGN_IGNORED},
    {"quiet", 'Q', NULL, FOREIGN_IGNORED},
    {"threads-per-core", 0, "N", FOREIGN_IGNORED},
    {"verbose", 'v', NULL, FOREIGN_IGNORED},
    {"wait-all-nodes", 0, "YES", FOREIGN_IGNORED},
    {"wckey", 0, "KEY", FOREIGN_IGNORED},
    {NULL, 0, NULL, FOREIGN_REFUSED},
};

const struct foreign *foreign_find(const char *name)
{
    for (const struct foreign *f = foreign_flags; name && f->name; f++)
        if (str_eq(f->name, name) || (name[0] && !name[1] && f->letter == name[0]))
            return f;
    return NULL;
}
