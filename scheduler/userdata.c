/* SPDX-License-Identifier: Apache-2.0
 *
 * User data (see userdata.h). The emulator sets BELAY_NODE_DIR and puts belay-agent on the PATH; a real image
 * has it installed and uses /var/lib/belay-agent.
 */
#include "scheduler/userdata.h"

#include "base/buf.h"
#include "base/str.h"
#include <string.h>

/* The CA as a YAML block text, indented. */
static void add_ca(struct buf *out, const char *pem)
{
    buf_adds(out, "ca: |\n");
    while (*pem) {
        size_t n = strcspn(pem, "\n");
        buf_adds(out, "  ");
        buf_add(out, pem, n);
        buf_addc(out, '\n');
        pem += n + (pem[n] == '\n');
    }
}

char *userdata_build(const struct userdata *u)
{
    struct buf out = {0};
    buf_adds(&out, "#!/bin/sh\n"
                   "# Turns this machine into a belay node. The token serves once.\n"
                   "set -eu\n"
                   "umask 077\n"
                   "dir=${BELAY_NODE_DIR:-/var/lib/belay-agent}\n"
                   "mkdir -p \"$dir\"\n"
                   "cat >\"$dir/agent.yaml\" <<'END_OF_CONFIGURATION'\n");
    buf_printf(&out, "server: \"%s\"\n", u->server_url);
    buf_printf(&out, "token: \"%s\"\n", u->token);
    buf_printf(&out, "provider: %s\n", u->provider);
    if (u->metadata)
        buf_printf(&out, "metadata: \"%s\"\n", u->metadata);
    buf_printf(&out, "orphan_timeout: %llds\n", (long long)u->orphan_s);
    add_ca(&out, u->ca_pem);
    buf_adds(&out,
        "END_OF_CONFIGURATION\n"
        "# A machine that its cluster has forgotten ends itself. An emulated one ends with its last "
        "process.\n"
        "[ -n \"${BELAY_NODE_DIR:-}\" ] || echo 'power_off: shutdown -h now' >>\"$dir/agent.yaml\"\n"
        "# An agent that is killed or replaced is started again and takes its tasks over; one that\n"
        "# ends by itself (0: told to; 3: the cluster does not want it any more) is not.\n"
        "while :; do\n"
        "    code=0\n"
        "    belay-agent --config \"$dir/agent.yaml\" || code=$?\n"
        "    case $code in 0|3) exit 0 ;; esac\n"
        "    sleep 1\n"
        "done\n");
    return buf_take(&out);
}
