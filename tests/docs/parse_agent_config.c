/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_agent_config FILE: checks a configuration of belay-agent, without the checks that depend on
 * the machine (agent/checks.h). Like belay-agent: exit code 0, or 2 with the error.
 */
#include "agent/config.h"
#include "base/err.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    struct config c = {0};
    struct err e = {0};
    int rc = argc == 2 ? config_read(argv[1], &c, &e) : err_set(&e, ERR_INVALID, "expected FILE");
    if (rc != 0)
        fprintf(stderr, "belay-agent: %s\n", e.text);
    else
        config_deinit(&c);
    return rc == 0 ? 0 : 2;
}
