/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's configuration: either valid and within its limits, or an error with file and line.
 */
#include "agent/config.h"
#include "base/wire/wire.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(const struct config *c)
{
    char token[129];
    struct err e = {0};
    assert(str_starts(c->server, "https://") && !str_ends(c->server, "/") &&
           !str_ends(c->metadata, "/"));
    assert(strstr(c->ca_pem, "-----BEGIN CERTIFICATE-----") && c->dir[0] == '/');
    assert(wire_node_name_check(c->name, NULL) == 0 && features_check(c->features, NULL) == 0);
    assert(c->cpus >= 0 && c->memory_mib >= 0 && c->orphan_timeout_ms >= 0);
    assert(config_is_elastic(c) == !str_eq(c->provider, "none"));
    assert(!c->token[0] || !c->token_file);
    if (!c->token_file && config_token(c, token, sizeof(token), &e) == 0)
        assert(str_eq(token, c->token));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c;
    struct err e = {0};
    unsetenv("BELAY_NODE_DIR");
    unsetenv("BELAY_METADATA");
    unsetenv("BELAY_NODE_GPUS");
    memset(&c, CHECK_PATTERN, sizeof(c));
    int rc = config_parse("agent.yaml", (const char *)data, size, &c, &e);
    if (rc == 0) {
        check_config(&c);
        config_deinit(&c);
    } else {
        check_error(rc, &e);
        assert(str_starts(e.text, "agent.yaml:"));
        check_untouched(&c, sizeof(c));
    }
    return 0;
}
