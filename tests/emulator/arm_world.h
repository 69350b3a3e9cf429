/* SPDX-License-Identifier: Apache-2.0
 *
 * The Azure part of the emulator in virtual time, without processes.
 */
#ifndef BELAY_TESTS_EMULATOR_ARM_WORLD_H
#define BELAY_TESTS_EMULATOR_ARM_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "emulator/arm/arm.h"
#include "emulator/arm/metadata.h"

#define ARM_START_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define SIZE "Standard_D8s_v5"
#define SUBSCRIPTION "00000000-0000-0000-0000-000000000001"
#define TENANT "00000000-0000-0000-0000-00000000000a"
#define GROUP "/subscriptions/" SUBSCRIPTION "/resourceGroups/lab"
#define VMS GROUP "/providers/Microsoft.Compute/virtualMachines"
#define NICS GROUP "/providers/Microsoft.Network/networkInterfaces"
#define DISKS GROUP "/providers/Microsoft.Compute/disks"
#define VERSION "api-version=2022-08-01"
#define NIC_VERSION "api-version=2020-11-01"
#define DISK_VERSION "api-version=2022-07-02"
#define SUBNET GROUP "/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
#define BOOT_MS 1000

/* Pools of SIZE: zone 1 (spot capacity 2, on-demand 1), zone 2 (none). Of Standard_F16s_v2: zone 1,
 * unlimited. */
struct arm_world {
    struct region_options options;
    struct region region;
    struct journal journal;
    struct arm_account account;
    struct arm_auth auth;
    struct arm arm;
    struct wall now;
    char *authorization;    /* header of all calls */
    struct arm_reply reply; /* the last one */
    char *operation;        /* URL of the last operation; may be NULL */
    struct arm_metadata_reply metadata;
};

void arm_world_start(struct arm_world *w);
void arm_world_stop(struct arm_world *w);
void arm_world_advance(struct arm_world *w, int64_t ms);

/* A body with ' for ". The caller frees it. */
char *arm_quoted(const char *text);

/* A spot machine's body: `more` is inserted before its end ("'tags':{...}" or ""), `properties` in
 * its properties. */
char *arm_machine(const char *more, const char *properties);

/* Calls the API; path without the query, body may be NULL. Returns the status; the reply is
 * w->reply until the next call. */
int arm_ask(
    struct arm_world *w, const char *method, const char *path, const char *query, const char *body);
/* arm_ask, failing the test unless the reply has that status and its text contains text ("" for
 * any). */
void arm_expect(struct arm_world *w, const char *method, const char *path, const char *query,
    const char *body, int status, const char *text);
const char *arm_reply_header(const struct arm_world *w, const char *name); /* NULL if absent */
/* The text at a path of keys, "properties.vmId"; "" if absent. */
const char *arm_reply_str(const struct arm_world *w, const char *path);

/* PUTs a spot machine in zone 1 and lets it boot. */
struct arm_resource *arm_run(struct arm_world *w, const char *name);

/* Status of the last operation; its error code in *code, which may be NULL. */
const char *arm_operation_status(struct arm_world *w, char code[64]);

size_t arm_count(const struct arm_world *w, enum arm_kind kind);

/* Queries the metadata service of a machine; the reply is w->metadata. */
int arm_look(
    struct arm_world *w, const struct arm_resource *vm, const char *path, const char *query);
int arm_look_as(
    struct arm_world *w, const struct arm_resource *vm, const struct arm_metadata_request *q);

#endif
