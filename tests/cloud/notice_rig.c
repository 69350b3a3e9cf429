/* SPDX-License-Identifier: Apache-2.0 */
#include "notice_rig.h"
#include "base/mem.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

static void on_notice(void *ctx, const struct notice *n)
{
    struct notice_rig *g = ctx;
    assert_true(g->n_notices < NOTICES_MAX);
    g->notices[g->n_notices++] = *n;
    if (g->acknowledge_at_notice)
        notice_reader_acknowledge(g->reader);
    if (g->stop_at_notice) {
        notice_reader_stop(g->reader);
        g->reader = NULL;
    }
}

static void on_identity(void *ctx, const struct err *e, const struct notice_identity *id)
{
    struct notice_rig *g = ctx;
    g->identities++;
    if (e)
        g->identity_error = *e;
    else
        g->identity = *id;
}

static void on_polled(void *ctx)
{
    struct notice_rig *g = ctx;
    g->looks++;
}

struct notice_rig *notice_rig_create(void)
{
    struct notice_rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    return g;
}

void notice_rig_start(struct notice_rig *g, const char *provider, const char *base_url)
{
    struct notice_reader_options o = {
        .base_url = base_url,
        .http = &g->http.client,
        .timers = &g->vt.timers,
        .on_notice = on_notice,
        .on_identity = on_identity,
        .on_polled = on_polled,
        .ctx = g,
    };
    g->reader = notice_reader_start(provider, &o);
    assert_non_null(g->reader);
}

void notice_rig_check_identity(const struct notice_rig *g, const struct notice_identity *expected)
{
    assert_int_equal(g->n_notices, 0);
    assert_int_equal(g->identities, 1);
    assert_int_equal(g->identity_error.kind, ERR_NONE);
    assert_string_equal(g->identity.provider, expected->provider);
    assert_string_equal(g->identity.instance_id, expected->instance_id);
    assert_string_equal(g->identity.type, expected->type);
    assert_string_equal(g->identity.zone, expected->zone);
    assert_string_equal(g->identity.region, expected->region);
    assert_string_equal(g->identity.life_cycle, expected->life_cycle);
}

int notice_rig_teardown(void **state)
{
    struct notice_rig *g = *state;
    notice_reader_stop(g->reader);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}
