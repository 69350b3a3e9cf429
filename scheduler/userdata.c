/* SPDX-License-Identifier: Apache-2.0
 *
 * User data (see userdata.h): the machine's own values, then userdata.sh. The build embeds as
 * strings (base/embed.py): userdata.sh, power_off.sh, the agent's unit
 * (agent/belay-agent.service.in) and each provider's addition to power_off.sh. The emulator sets
 * BELAY_NODE_DIR; a real machine uses /var/lib/belay-agent.
 *
 * Text in single quotes or in a quoted here-document cannot contain the end mark: a URL of the
 * configuration has no quotes, a token has only letters, digits and dots, a CA is PEM, an account
 * is followed by a number.
 */
#include "scheduler/userdata.h"

#include "base/buf.h"
#include "cloud/provider.h"
#include "scheduler/config/run_as.h"
#include <string.h>

extern const char userdata_sh[], power_off_sh[], agent_service[];

static void add_configuration(struct buf *out, const struct userdata *u)
{
    buf_adds(out, "configuration() {\ncat <<'END'\n");
    buf_printf(out, "server: \"%s\"\n", u->server_url);
    buf_printf(out, "token: \"%s\"\n", u->token);
    buf_printf(out, "provider: %s\n", u->provider);
    if (u->metadata)
        buf_printf(out, "metadata: \"%s\"\n", u->metadata);
    if (u->metadata_guard)
        buf_printf(out, "metadata_guard: %s\n", u->metadata_guard);
    if (u->notice_reserve_s > 0)
        buf_printf(out, "notice_reserve: %llds\n", (long long)u->notice_reserve_s);
    if (u->prolog)
        buf_printf(out, "prolog: \"%s\"\n", u->prolog);
    if (u->epilog)
        buf_printf(out, "epilog: \"%s\"\n", u->epilog);
    if (u->hook_timeout_s > 0)
        buf_printf(out, "hook_timeout: %llds\n", (long long)u->hook_timeout_s);
    buf_printf(out, "orphan_timeout: %llds\n", (long long)u->orphan_s);
    buf_adds(out, "END\n}\n");
}

static void add_power_off(struct buf *out, const struct userdata *u)
{
    const struct cloud_provider *provider = cloud_provider_find(u->provider);
    buf_adds(out, "power_off_script() {\ncat <<'END'\n");
    buf_printf(out, "api='%s'\n", u->endpoint ? u->endpoint : "");
    buf_printf(out, "metadata='%s'\n", u->metadata ? u->metadata : "");
    if (provider && provider->end_script)
        buf_adds(out, provider->end_script);
    buf_printf(out, "%sEND\n}\n", power_off_sh);
}

char *userdata_build(const struct userdata *u)
{
    struct buf out = {0};
    size_t n = strlen(u->ca_pem);
    buf_adds(&out, "#!/bin/sh\n"
                   "# Turns this machine into a belay node. The token serves once.\n"
                   "set -eu\n"
                   "umask 077\n");
    buf_printf(&out, "server='%s'\n", u->server_url);
    buf_printf(&out, "version='%s'\n", BELAY_VERSION);
    buf_printf(&out, "boot_s=%lld\n", (long long)u->boot_s);
    buf_printf(&out, "token='%s'\n", u->token);
    add_configuration(&out, u);
    add_power_off(&out, u);
    buf_printf(&out, "ca() {\ncat <<'END'\n%s%sEND\n}\n", u->ca_pem,
        n > 0 && u->ca_pem[n - 1] == '\n' ? "" : "\n");
    buf_printf(&out, "unit() {\ncat <<'END'\n%sEND\n}\n", agent_service);
    buf_adds(&out, "accounts() {\ncat <<'END'\n");
    for (size_t i = 0; i < u->n_accounts; i++)
        buf_printf(&out, "%s %lld\n", u->accounts[i].name, (long long)u->accounts[i].uid);
    buf_adds(&out, "END\n}\n");
    buf_adds(&out, userdata_sh);
    return buf_take(&out);
}
