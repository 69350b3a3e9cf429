/* SPDX-License-Identifier: Apache-2.0
 *
 * A reservation of nodes for maintenance, as stored (maintenance.h).
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_MAINTENANCE_ROW_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_MAINTENANCE_ROW_H

#include "base/time.h"
#include "base/zone.h"
#include "job/hosts.h"
#include "scheduler/core/model/types.h"

#define MAINTENANCES_MAX 64 /* at a time: bits of a mask */
#define MAINTENANCE_WHO_MAX 256
#define MAINTENANCE_REASON_MAX 128
#define MAINTENANCE_MIN_MS INT64_C(60000)
#define MAINTENANCE_WEEK_MS (INT64_C(7) * 86400000)
#define MAINTENANCE_AHEAD_MAX_MS (INT64_C(366) * 86400000)

/*
 *  added --> PLANNED --- from_at ---> OPEN --- its end, or removed ---> the row is deleted
 *               ^                      |
 *               +---- every week ------+
 */
enum maintenance_state { MAINTENANCE_PLANNED, MAINTENANCE_OPEN };
extern const char *const maintenance_state_names[]; /* "planned" "open" */

struct maintenance_row {
    int64_t id;
    char name[CORE_NAME_MAX]; /* unique among those that are not over */
    enum maintenance_state state;
    /* Either a list of nodes (job/hosts.h), or all nodes of a pool. */
    char nodes[HOSTS_TEXT_MAX], pool[CORE_NAME_MAX];
    /* Whose jobs may run there meanwhile: lists of names (base/names.h); both "" = nobody's. */
    char users[MAINTENANCE_WHO_MAX], teams[MAINTENANCE_WHO_MAX];
    char reason[MAINTENANCE_REASON_MAX]; /* for people; may be "" */
    char by[CORE_NAME_MAX];
    struct wall created_at;
    struct wall from_at; /* of the current or next time */
    int64_t for_ms;
    bool is_weekly;           /* again seven days later, at the same time in `zone` */
    char zone[ZONE_NAME_MAX]; /* in which its times are shown, too */
    bool is_over;             /* not stored: the row is deleted */
};

static inline struct wall maintenance_until(const struct maintenance_row *r)
{
    return (struct wall){r->from_at.ms + r->for_ms};
}

#endif
