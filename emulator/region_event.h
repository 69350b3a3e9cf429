/* SPDX-License-Identifier: Apache-2.0
 *
 * Events applied to the emulated region from outside, in the form of POST /events and of the
 * config's `events:`: an object with one key, the event's name, and its parameters (all listed in
 * docs/reference/emulator.md).
 *
 *     {"reclaim": {"instance": "random", "notice_s": 10}}
 */
#ifndef BELAY_EMULATOR_REGION_EVENT_H
#define BELAY_EMULATOR_REGION_EVENT_H

#include "base/json.h"
#include "cloud/driver.h"
#include "emulator/fault.h"

enum region_event_kind {
    EVENT_RECLAIM,
    EVENT_REBALANCE,
    EVENT_SHUTDOWN, /* from the console or the machine itself: no reclaim, no notice */
    EVENT_CAPACITY,
    EVENT_PRICE,
    EVENT_FAULT, /* throttle, refuse, slow, drop_reply */
    EVENT_CLEAR  /* remove all faults */
};

enum region_pick { PICK_ALL, PICK_RANDOM, PICK_ONE };

struct region_event {
    enum region_event_kind kind;
    char provider[16]; /* "" if not given */
    /* reclaim, rebalance, shutdown: which of the running instances */
    enum region_pick pick;
    char instance[CLOUD_NAME_MAX]; /* for PICK_ONE */
    char zone[CLOUD_NAME_MAX];     /* "" = any; for capacity and price the pool's */
    char type[CLOUD_NAME_MAX];
    enum cloud_market market;
    /* reclaim */
    bool is_without_notice, has_notice;
    int64_t notice_ms;
    bool has_soft_off;
    int64_t soft_off_ms; /* after the notice */
    /* shutdown */
    int64_t shutdown_ms; /* until it is off in any case */
    /* capacity */
    bool is_release; /* return to the trace */
    int64_t n;
    int64_t price_uusd_h;
    struct fault fault;
};

/* ERR_INVALID names what is wrong and the nearest valid name. */
int region_event_parse(const json_t *value, struct region_event *ret_event, struct err *e);

#endif
