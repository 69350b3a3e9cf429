/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of the configuration: parsing of a text, and pools of each type that are
 * complete or, for GCP, lack only the types.
 */
#ifndef BELAY_TESTS_SCHEDULER_CONFIG_RIG_H
#define BELAY_TESTS_SCHEDULER_CONFIG_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scheduler/config/config.h"
#include <string.h>

#define POOL                                                                                       \
    "pools:\n  b:\n    provider: aws\n    region: r\n    image: ami-1\n    zones: [z]\n    "       \
    "types: "                                                                                      \
    "[g5.xlarge]\n"

#define GCP_POOL                                                                                   \
    "pools:\n  b:\n    provider: gcp\n    region: us-central1\n    image: a/b\n    project: p\n"   \
    "    zones: [us-central1-a]\n    markets: [spot]\n    types: "

#define LAMBDA_POOL "pools:\n  b:\n    provider: lambda\n    region: us-west-2\n    ssh_key: ops\n"

#define HOSTS_POOL                                                                                 \
    "pools:\n  b:\n    provider: static\n    hosts: [rack1, \"rack2:22\", rack3]\n    user: u\n  " \
    "  key: "                                                                                      \
    "/k\n"                                                                                         \
    "    known_hosts: /h\n"

static inline struct config parse(const char *text)
{
    struct config c;
    struct err e = {0};
    if (config_parse("lab.yaml", text, strlen(text), NULL, &c, &e) != 0)
        fail_msg("%s", e.text);
    return c;
}

static inline const char *setting(const struct config_pool *p, const char *key)
{
    struct cloud_setup s = {.provider = p->provider};
    for (size_t i = 0; i < CLOUD_SETTINGS_MAX; i++)
        s.values[i] = p->settings[i];
    return cloud_setup_get(&s, key);
}

#endif
