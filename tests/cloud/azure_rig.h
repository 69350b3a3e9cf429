/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver of Azure on recorded replies.
 */
#ifndef BELAY_TESTS_CLOUD_AZURE_RIG_H
#define BELAY_TESTS_CLOUD_AZURE_RIG_H

#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/azure.h"
#include "fake_http.h"
#include "outcome.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define SECRET "q8Q~sEcReT.example_0123456789"
#define ENDPOINT "https://management.azure.com"
#define GROUP "/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/resourceGroups/lab/providers/"
#define VMS ENDPOINT GROUP "Microsoft.Compute/virtualMachines"
#define VM VMS "/belay-lab-17?api-version=2022-08-01"
#define NIC                                                                                        \
    ENDPOINT GROUP "Microsoft.Network/networkInterfaces/belay-lab-17-nic?api-version=2020-11-01"
#define DISK ENDPOINT GROUP "Microsoft.Compute/disks/belay-lab-17-os?api-version=2022-07-02"
#define OPERATION                                                                                  \
    ENDPOINT "/subscriptions/s/providers/Microsoft.Compute/locations/eastus/operations/6b1e?p=1"
#define TOKEN_PATH "/tenant-1/oauth2/v2.0/token"
#define TOKEN_REPLY "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"eyJ.T0.k\"}"

/* A driver with a principal from the environment, and the outcome of its last call. */
struct azure_rig {
    struct vtimers vt;
    struct fake_http http;
    struct azure_options options;
    struct cloud_driver *driver;
    struct outcome got;
    size_t first; /* first request of the pending call that is not for a token */
    char *file;   /* with credentials */
};

int azure_rig_setup(void **state);
int azure_rig_teardown(void **state);
void azure_rig_clear_environment(void);
void azure_rig_create(struct azure_rig *g);
/* Runs until the pending call has completed: once, and never inside the call. */
void azure_rig_finish(struct azure_rig *g, int expected);
void azure_rig_start_launch(struct azure_rig *g);
void azure_rig_launch(struct azure_rig *g, int expected);
void azure_rig_list(struct azure_rig *g, int expected);
void azure_rig_terminate(struct azure_rig *g, const char *const *ids, size_t n, int expected);
void azure_rig_answer_vm(struct azure_rig *g);

/* The requests of the last call except those for tokens: "METHOD URL", NULL-terminated. */
void assert_asked(struct azure_rig *g, const char *const *expected);
#define ASKED(g, ...) assert_asked((g), (const char *const[]){__VA_ARGS__, NULL})

/* For any requests: the token went only to the API, and the secret only to the login service. */
void assert_nothing_leaked(struct azure_rig *g);

#endif
