/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing events: a table with one reader function per event.
 */
#include "emulator/region_event.h"
#include "base/str.h"

#define NOTICE_S_MAX 86400
#define SHUTDOWN_S 30
#define COUNT_MAX 1000000
#define SLOW_MS_MAX 600000

static const char *const market_names[] = {"spot", "on-demand", NULL};

static void read_pick(struct json_reader *r, struct region_event *ev)
{
    json_opt_strcpy(r, "instance", ev->instance, sizeof(ev->instance), "");
    json_opt_strcpy(r, "zone", ev->zone, sizeof(ev->zone), "");
    json_opt_strcpy(r, "type", ev->type, sizeof(ev->type), "");
    if (str_eq(ev->instance, "random"))
        ev->pick = PICK_RANDOM;
    else if (str_eq(ev->instance, "all") || (!ev->instance[0] && (ev->zone[0] || ev->type[0])))
        ev->pick = PICK_ALL;
    else if (ev->instance[0])
        ev->pick = PICK_ONE;
    else
        json_reader_fail(r, "instance",
            "expected an instance's id, \"random\" or \"all\" (or a zone or a type)");
}

static void read_reclaim(struct json_reader *r, struct region_event *ev)
{
    read_pick(r, ev);
    ev->is_without_notice = json_opt_bool(r, "without_notice", false);
    const json_t *notice = json_object_get(r->object, "notice_s");
    ev->has_notice = notice && !json_is_null(notice);
    ev->notice_ms = SECONDS_MS(json_opt_i64(r, "notice_s", 0, NOTICE_S_MAX, 0));
    const json_t *soft_off = json_object_get(r->object, "soft_off_s");
    ev->has_soft_off = soft_off && !json_is_null(soft_off);
    ev->soft_off_ms = SECONDS_MS(json_opt_i64(r, "soft_off_s", 0, NOTICE_S_MAX, 0));
    if (ev->is_without_notice && ev->has_notice)
        json_reader_fail(r, "notice_s", "cannot be given together with without_notice");
    if (ev->is_without_notice && ev->has_soft_off)
        json_reader_fail(r, "soft_off_s", "cannot be given together with without_notice");
}

static void read_shutdown(struct json_reader *r, struct region_event *ev)
{
    read_pick(r, ev);
    ev->shutdown_ms = SECONDS_MS(json_opt_i64(r, "seconds", 0, NOTICE_S_MAX, SHUTDOWN_S));
}

static void read_pool(struct json_reader *r, struct region_event *ev)
{
    json_req_strcpy(r, "zone", ev->zone, sizeof(ev->zone));
    json_req_strcpy(r, "type", ev->type, sizeof(ev->type));
    ev->market = json_opt_enum(r, "market", market_names, CLOUD_SPOT) == CLOUD_SPOT
                     ? CLOUD_SPOT
                     : CLOUD_ON_DEMAND;
}

static void read_capacity(struct json_reader *r, struct region_event *ev)
{
    read_pool(r, ev);
    ev->is_release = json_opt_bool(r, "release", false);
    if (!ev->is_release)
        ev->n = json_req_i64(r, "n", 0, COUNT_MAX);
}

static void read_price(struct json_reader *r, struct region_event *ev)
{
    read_pool(r, ev);
    char text[32];
    json_req_strcpy(r, "usd_per_hour", text, sizeof(text));
    struct err e;
    if (r->rc == 0 && str_to_uusd(text, &ev->price_uusd_h, &e) < 0)
        json_reader_fail(r, "usd_per_hour", "%s", e.text);
}

static void read_fault(struct json_reader *r, struct region_event *ev, enum fault_kind kind)
{
    ev->fault.kind = kind;
    json_req_strcpy(r, "action", ev->fault.action, sizeof(ev->fault.action));
    ev->fault.count = json_opt_i64(r, "count", 1, COUNT_MAX, 1);
}

static void read_throttle(struct json_reader *r, struct region_event *ev)
{
    read_fault(r, ev, FAULT_THROTTLE);
}

static void read_refuse(struct json_reader *r, struct region_event *ev)
{
    read_fault(r, ev, FAULT_REFUSE);
    json_req_strcpy(r, "code", ev->fault.code, sizeof(ev->fault.code));
}

static void read_slow(struct json_reader *r, struct region_event *ev)
{
    read_fault(r, ev, FAULT_SLOW);
    ev->fault.ms = json_req_i64(r, "ms", 1, SLOW_MS_MAX);
}

static void read_drop(struct json_reader *r, struct region_event *ev)
{
    static const char *const how[] = {"close", "garbage", "error", "torn", NULL};
    read_fault(r, ev, FAULT_DROP);
    ev->fault.drop = (enum fault_drop)json_opt_enum(r, "how", how, DROP_CLOSE);
}

static void read_nothing(struct json_reader *r, struct region_event *ev)
{
    (void)r, (void)ev;
}

static const struct {
    const char *name;
    enum region_event_kind kind;
    void (*read)(struct json_reader *r, struct region_event *ev);
} kinds[] = {
    {"reclaim", EVENT_RECLAIM, read_reclaim},
    {"rebalance", EVENT_REBALANCE, read_pick},
    {"shutdown", EVENT_SHUTDOWN, read_shutdown},
    {"capacity", EVENT_CAPACITY, read_capacity},
    {"price", EVENT_PRICE, read_price},
    {"throttle", EVENT_FAULT, read_throttle},
    {"refuse", EVENT_FAULT, read_refuse},
    {"slow", EVENT_FAULT, read_slow},
    {"drop_reply", EVENT_FAULT, read_drop},
    {"clear", EVENT_CLEAR, read_nothing},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int unknown_kind(const char *name, struct err *e)
{
    const char *names[N_KINDS + 1] = {0};
    for (size_t i = 0; i < N_KINDS; i++)
        names[i] = kinds[i].name;
    char shown[STR_SHOW_MAX];
    const char *nearest = str_nearest(name, names);
    return err_set(e, ERR_INVALID,
        "event %s is not known%s%s%s; there are reclaim, rebalance, shutdown, capacity, price, "
        "throttle, refuse, slow, drop_reply, clear",
        str_show(name, shown), nearest ? ": did you mean \"" : "", nearest ? nearest : "",
        nearest ? "\"?" : "");
}

int region_event_parse(const json_t *value, struct region_event *ret_event, struct err *e)
{
    if (!json_is_object(value) || json_object_size(value) != 1)
        return err_set(
            e, ERR_INVALID, "an event is an object with one key, its name: {\"reclaim\": {...}}");
    void *it = json_object_iter((json_t *)value);
    const char *name = json_object_iter_key(it);
    for (size_t i = 0; i < N_KINDS; i++) {
        if (!str_eq(kinds[i].name, name))
            continue;
        struct region_event ev = {.kind = kinds[i].kind};
        struct json_reader r;
        json_reader_init(&r, json_object_iter_value(it), name, e);
        json_opt_strcpy(&r, "provider", ev.provider, sizeof(ev.provider), "");
        kinds[i].read(&r, &ev);
        int rc = json_reader_finish(&r);
        if (rc == 0)
            *ret_event = ev;
        return rc;
    }
    return unknown_kind(name, e);
}
