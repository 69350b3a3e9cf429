/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/emulator.h"
#include "emulator/control.h"
#include "base/uv/timers.h"
#include <assert.h>

#define CONTROL_BODY_MAX (1u << 20)
#define CONNECTIONS_MAX 1000

struct wall emulator_now(struct emulator *em)
{
    return (struct wall){clock_mono(&clock_system).ms + em->host.wall_minus_mono_ms};
}

void emulator_advance(struct emulator *em)
{
    for (size_t k = 0; k < em->n_providers; k++)
        region_advance(&em->providers[k].region, emulator_now(em));
}

static void on_timer(struct timer *t, void *ctx)
{
    (void)t;
    emulator_advance(ctx);
    emulator_changed(ctx);
}

static struct wall next_event(const struct emulator *em)
{
    struct wall first = WALL_NONE;
    for (size_t k = 0; k < em->n_providers; k++) {
        struct wall next = region_next(&em->providers[k].region);
        if (wall_is_set(next) && (!wall_is_set(first) || next.ms < first.ms))
            first = next;
    }
    return first;
}

void emulator_changed(struct emulator *em)
{
    control_wake(em);
    for (size_t k = 0; k < em->n_providers; k++) {
        front_server_wake(em->providers[k].api);
        front_server_wake(em->providers[k].side);
        machines_wake(em->providers[k].machines);
    }
    struct wall next = next_event(em);
    if (em->is_stopping || !wall_is_set(next)) {
        timer_stop(em->timers, &em->timer);
        return;
    }
    int64_t left_ms = next.ms - emulator_now(em).ms;
    timer_start(em->timers, &em->timer, left_ms > 0 ? left_ms : 0);
}

static struct wall host_now(void *ctx)
{
    return emulator_now(ctx);
}

static void host_changed(void *ctx)
{
    emulator_changed(ctx);
}

static void console(void *ctx, const struct instance *i, struct buf *out)
{
    const struct provider *p = ctx;
    machines_console(p->machines, i, out);
}

static int open_front(
    struct provider *p, const struct provider_config *c, const char *dir, struct err *e)
{
    p->setup = (struct front_setup){.region = &p->region,
        .options = c->options,
        .dir = dir,
        .role_ttl_ms = c->role_ttl_ms,
        .console = console,
        .console_ctx = p};
    int rc = p->front->open(&p->setup, &p->state, e);
    p->machine_options.front_state = p->state;
    return rc;
}

static int start_server(struct emulator *em, struct provider *p, const struct front *front,
    void *state, int port, struct front_server **ret_server, struct err *e)
{
    const struct front_server_options o = {.front = front,
        .region = &p->region,
        .state = state,
        .host = em->config->host,
        .port = port,
        .now = host_now,
        .changed = host_changed,
        .ctx = em};
    return front_server_start(em->loop, &o, ret_server, e);
}

static int start_api(struct emulator *em, struct provider *p, int port, struct err *e)
{
    int rc = start_server(em, p, p->front, p->state, port, &p->api, e), side_port = 0;
    void *side = rc == 0 && p->front->side ? p->front->side_state(p->state, &side_port) : NULL;
    return side ? start_server(em, p, p->front->side, side, side_port, &p->side, e) : rc;
}

static int start_provider(struct emulator *em, struct provider_config *c, struct err *e)
{
    struct provider *p = &em->providers[em->n_providers];
    p->front = c->front;
    p->machine_options = (struct machines_options){.dir = em->config->dir,
        .path = em->config->path,
        .provider = c->front->name,
        .metadata_host = c->metadata_host,
        .metadata_port = c->metadata_port,
        .shutdown_ms = em->config->shutdown_ms,
        .front = c->front,
        .holders = &em->holders};
    p->machines = machines_create(em->loop, &p->region, &p->machine_options, &em->host);
    region_init(&p->region, &c->region, &em->journal, c->pools, c->n_pools, &machines_ops,
        p->machines, emulator_now(em));
    c->pools = NULL;
    c->n_pools = 0;
    em->regions[em->n_providers++] = &p->region;
    int rc = open_front(p, c, em->config->dir, e);
    return rc < 0 ? rc : start_api(em, p, c->port, e);
}

static int start_control(struct emulator *em, struct err *e)
{
    const struct http_server_options o = {.host = em->config->host,
        .port = em->config->control_port,
        .max_body_bytes = CONTROL_BODY_MAX,
        .limits = {[HTTP_STRANGER] = {.max_connections = CONNECTIONS_MAX}},
        .handler = control_handle,
        .ctx = em};
    return http_server_start(em->loop, &o, &em->control, e);
}

int emulator_start(
    struct emulator *em, uv_loop_t *loop, struct emulator_config *config, struct err *e)
{
    *em = (struct emulator){.loop = loop, .config = config};
    em->timers = uv_timers_create(loop);
    timer_init(&em->timer, on_timer, em);
    em->host = (struct machines_host){.now = host_now,
        .changed = host_changed,
        .wall_minus_mono_ms = clock_wall(&clock_system).ms - clock_mono(&clock_system).ms,
        .ctx = em};
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < config->n_providers; k++)
        rc = start_provider(em, &config->providers[k], e);
    if (rc == 0)
        rc = start_control(em, e);
    emulator_changed(em);
    return rc;
}

void emulator_stop(struct emulator *em)
{
    em->is_stopping = true;
    timer_stop(em->timers, &em->timer);
    http_server_stop(em->control);
    em->control = NULL;
    for (size_t k = 0; k < em->n_providers; k++) {
        front_server_stop(em->providers[k].api);
        em->providers[k].api = NULL;
        front_server_stop(em->providers[k].side);
        em->providers[k].side = NULL;
        machines_kill_all(em->providers[k].machines);
    }
}

size_t emulator_machines(const struct emulator *em)
{
    size_t n = 0;
    for (size_t k = 0; k < em->n_providers; k++)
        n += machines_count(em->providers[k].machines);
    return n;
}

bool emulator_is_empty(const struct emulator *em)
{
    return emulator_machines(em) == 0;
}

void emulator_deinit(struct emulator *em)
{
    assert(emulator_is_empty(em));
    uv_timers_destroy(em->timers);
    for (size_t k = 0; k < em->n_providers; k++) {
        struct provider *p = &em->providers[k];
        region_deinit(&p->region);
        p->front->close(p->state);
        machines_destroy(p->machines);
    }
    journal_deinit(&em->journal);
}
