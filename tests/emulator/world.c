/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/world.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int op_boot(void *ctx, struct instance *i, struct err *e)
{
    struct world *w = ctx;
    (void)i;
    w->n_boots++;
    return w->boot_fails ? err_set(e, ERR_IO, "it does not boot") : 0;
}

static void op_doom(void *ctx, struct instance *i)
{
    struct world *w = ctx;
    (void)i;
    w->n_dooms++;
}

static void op_soft_off(void *ctx, struct instance *i)
{
    struct world *w = ctx;
    (void)i;
    w->n_soft_offs++;
}

static void op_shutdown(void *ctx, struct instance *i, bool at_once)
{
    struct world *w = ctx;
    (void)i;
    w->n_shutdowns++;
    w->was_at_once = at_once;
}

static const struct region_ops ops = {
    .boot = op_boot, .doom = op_doom, .soft_off = op_soft_off, .shutdown = op_shutdown};

struct market_pool world_pool(const char *zone, const char *type, int64_t spot, int64_t on_demand)
{
    struct market_pool p = {.capacity = {spot, on_demand}, .price_uusd_h = {360000, 720000}};
    STR_COPY(p.zone, zone);
    STR_COPY(p.type, type);
    return p;
}

void world_init(struct world *w)
{
    log_set_level(LOG_ERROR);
    *w = (struct world){.now = {START_MS}};
    w->options = (struct region_options){.name = "us-east-1",
        .account = "111122223333",
        .seed = 7,
        .boot_delay_ms = 1000,
        .notice_ms = 120000};
}

void world_start(struct world *w)
{
    struct market_pool *pools = mem_array(3, sizeof(*pools));
    pools[0] = world_pool("us-east-1a", TYPE, 2, 1);
    pools[1] = world_pool("us-east-1b", TYPE, 2, 1);
    pools[2] = world_pool("us-east-1a", "g5.xlarge", MARKET_UNLIMITED, MARKET_UNLIMITED);
    w->regions[0] = &w->region;
    region_init(&w->region, &w->options, &w->journal, pools, 3, &ops, w, w->now);
}

void world_begin(struct world *w)
{
    world_init(w);
    world_start(w);
}

void world_stop(struct world *w)
{
    ec2_store_deinit(&w->store);
    w->store = (struct ec2_store){0};
    region_deinit(&w->region);
    journal_deinit(&w->journal);
}

void world_advance(struct world *w, int64_t ms)
{
    w->now.ms += ms;
    region_advance(&w->region, w->now);
}

struct instance *world_launch(struct world *w, const char *zone)
{
    struct launch_spec spec = {.market = CLOUD_SPOT};
    struct reservation *v = NULL;
    STR_COPY(spec.type, TYPE);
    STR_COPY(spec.zone, zone);
    int rc = region_launch(&w->region, &spec, zone, "", 1, 1, w->now, &v, NULL);
    launch_spec_deinit(&spec);
    return rc == 0 ? v->instances[0] : NULL;
}

struct instance *world_run(struct world *w, const char *zone)
{
    struct instance *i = world_launch(w, zone);
    assert_non_null(i);
    world_advance(w, w->options.boot_delay_ms);
    assert_int_equal(i->state, INSTANCE_RUNNING);
    return i;
}

void world_event(struct world *w, const char *json)
{
    struct region_event ev;
    struct err e = {0};
    json_t *value = NULL, *reply = NULL;
    assert_int_equal(json_parse(json, strlen(json), 4096, &value, &e), 0);
    if (region_event_parse(value, &ev, &e) < 0)
        fail_msg("%s: %s", json, e.text);
    region_advance(&w->region, w->now);
    if (region_apply(&w->region, &ev, w->now, &reply, &e) < 0)
        fail_msg("%s: %s", json, e.text);
    region_advance(&w->region, w->now);
    json_decref(value);
    json_decref(reply);
}

void world_call(struct world *w, const char *body, struct ec2_reply *reply)
{
    static const struct ec2_subnet subnets[] = {{"subnet-a", "us-east-1a"}};
    static const char *const images[] = {"ami-1", NULL}, *const profiles[] = {"agent", NULL};
    const struct ec2_account account = {.images = images,
        .profiles = profiles,
        .subnets = subnets,
        .n_subnets = 1,
        .page = w->page,
        .image_volume_gib = w->image_volume_gib,
        .store = &w->store};
    struct form form = {0};
    struct err e = {0};
    char *whole = mem_printf("%s&Version=2016-11-15", body);
    if (form_parse(whole, strlen(whole), &form, &e) < 0)
        fail_msg("%s: %s", body, e.text);
    ec2_api_call(&w->region, &account, &form, w->now, reply);
    form_deinit(&form);
    free(whole);
}

void world_expect(struct world *w, const char *body, int status, const char *text)
{
    struct ec2_reply reply;
    world_call(w, body, &reply);
    if (reply.status != status || !strstr(buf_str(&reply.body), text))
        fail_msg("%s: expected %d with \"%s\", got %d: %s", body, status, text, reply.status,
            buf_str(&reply.body));
    buf_deinit(&reply.body);
}

void world_run_instance(struct world *w, const char *body, char id[CLOUD_NAME_MAX])
{
    struct ec2_reply reply;
    world_call(w, body, &reply);
    if (reply.status != 200)
        fail_msg("%s: %s", body, buf_str(&reply.body));
    reply_text(&reply, "instanceId", id, CLOUD_NAME_MAX);
    buf_deinit(&reply.body);
}

void reply_text(const struct ec2_reply *reply, const char *name, char *out, size_t size)
{
    char open[80];
    snprintf(open, sizeof(open), "<%s>", name);
    const char *at = strstr(buf_str(&reply->body), open);
    at = at ? at + strlen(open) : "";
    snprintf(out, size, "%.*s", (int)strcspn(at, "<"), at);
}
