/* SPDX-License-Identifier: Apache-2.0
 *
 * A region in virtual time for the tests: two zones, one fake machine.
 */
#ifndef BELAY_TESTS_EMULATOR_WORLD_H
#define BELAY_TESTS_EMULATOR_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "emulator/ec2/ec2.h"
#include "emulator/region.h"

#define START_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define TYPE "g6.xlarge"

/* Pools: us-east-1a and us-east-1b of TYPE (spot capacity 2, on-demand 1), us-east-1a of g5.xlarge
 * (unlimited). */
struct world {
    struct region_options options;
    struct region region;
    struct region *regions[1]; /* points to region */
    struct journal journal;
    struct ec2_store store;
    int64_t page; /* of the account */
    int64_t image_volume_gib;
    struct wall now;
    bool boot_fails;
    int n_boots, n_dooms, n_soft_offs, n_shutdowns;
    bool was_at_once;
};

/* options may be set between init and start. */
void world_init(struct world *w);
void world_start(struct world *w);
void world_begin(struct world *w); /* world_init, then world_start */
void world_stop(struct world *w);
void world_advance(struct world *w, int64_t ms);

struct market_pool world_pool(const char *zone, const char *type, int64_t spot, int64_t on_demand);

/* Launches a spot instance of TYPE in that zone, pending. NULL without capacity. */
struct instance *world_launch(struct world *w, const char *zone);
/* The same, and lets it boot. */
struct instance *world_run(struct world *w, const char *zone);

/* Applies an event given as JSON; fails the test if it is refused. */
void world_event(struct world *w, const char *json);

/* Calls the API. body: "Action=..." without the version. The caller frees the reply. */
void world_call(struct world *w, const char *body, struct ec2_reply *ret_reply);
/* world_call, failing the test unless the reply has that status and contains text. */
void world_expect(struct world *w, const char *body, int status, const char *text);

/* Bodies of world_call, to be concatenated; TAG is followed by "Key=..." or "Value=...". */
#define RUN "Action=RunInstances&ImageId=ami-1&InstanceType=g6.xlarge&MinCount=1&MaxCount=1"
#define SPOT "&InstanceMarketOptions.MarketType=spot"
#define IN_A "&Placement.AvailabilityZone=us-east-1a"
#define TAG "&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1."
/* Calls RunInstances, which must succeed, and returns the instance's id. */
void world_run_instance(struct world *w, const char *body, char id[CLOUD_NAME_MAX]);

/* The text of the first <name>...</name> in the reply, "" if absent. */
void reply_text(const struct ec2_reply *reply, const char *name, char *out, size_t size);

#endif
