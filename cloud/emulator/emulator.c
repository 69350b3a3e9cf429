/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/emulator/emulator.h"
#include "base/uv/loop.h"
#include <assert.h>

#define CONTROL_BODY_MAX (1u << 20)
#define CONNECTIONS_MAX 1000

struct wall emulator_now(struct emulator *em)
{
    return (struct wall){clock_mono(&clock_system).ms + em->host.wall_minus_mono_ms};
}

static void on_timer(struct timer *t, void *ctx)
{
    struct emulator *em = ctx;
    (void)t;
    region_advance(&em->region, emulator_now(em));
    emulator_changed(em);
}

void emulator_changed(struct emulator *em)
{
    control_wake(em);
    struct wall next = region_next(&em->region);
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

static void start_region(struct emulator *em, struct emulator_config *c)
{
    em->host = (struct machines_host){.now = host_now,
        .changed = host_changed,
        .wall_minus_mono_ms = clock_wall(&clock_system).ms - clock_mono(&clock_system).ms,
        .ctx = em};
    em->machine_options = (struct machines_options){.dir = c->dir,
        .path = c->path,
        .metadata_host = c->metadata_host,
        .metadata_port = c->metadata_port,
        .shutdown_ms = c->shutdown_ms,
        .role_ttl_ms = c->role_ttl_ms};
    for (size_t i = 0; i < c->n_keys; i++)
        keyring_add(&em->keyring, c->keys[i].access, c->keys[i].secret);
    em->machines = machines_create(em->loop, &em->region, &em->keyring, &em->machine_options, &em->host);
    em->account = (struct ec2_account){.images = c->images,
        .profiles = c->profiles,
        .subnets = c->subnets,
        .n_subnets = c->n_subnets,
        .console = machines_console,
        .console_ctx = em->machines};
    region_init(&em->region, &c->region, c->pools, c->n_pools, &machines_ops, em->machines, emulator_now(em));
    c->pools = NULL;
    c->n_pools = 0;
}

static int start_server(struct emulator *em, int port, size_t body_max, http_handler_fn handler,
    struct http_server **ret_server, struct err *e)
{
    const struct http_server_options o = {.host = em->config->host,
        .port = port,
        .max_body_bytes = body_max,
        .max_connections = CONNECTIONS_MAX,
        .handler = handler,
        .ctx = em};
    return http_server_start(em->loop, &o, ret_server, e);
}

int emulator_start(struct emulator *em, uv_loop_t *loop, struct emulator_config *config, struct err *e)
{
    *em = (struct emulator){.loop = loop, .config = config};
    em->timers = uv_timers_create(loop);
    timer_init(&em->timer, on_timer, em);
    start_region(em, config);
    int rc = start_server(em, config->ec2_port, FORM_BYTES_MAX, ec2_server_handle, &em->ec2, e);
    if (rc == 0)
        rc = start_server(em, config->control_port, CONTROL_BODY_MAX, control_handle, &em->control, e);
    emulator_changed(em);
    return rc;
}

void emulator_stop(struct emulator *em)
{
    em->is_stopping = true;
    timer_stop(em->timers, &em->timer);
    http_server_stop(em->ec2);
    http_server_stop(em->control);
    em->ec2 = em->control = NULL;
    machines_kill_all(em->machines);
}

bool emulator_is_empty(const struct emulator *em)
{
    return machines_count(em->machines) == 0;
}

void emulator_deinit(struct emulator *em)
{
    assert(emulator_is_empty(em));
    uv_timers_destroy(em->timers);
    region_deinit(&em->region);
    keyring_deinit(&em->keyring);
    machines_destroy(em->machines);
}
