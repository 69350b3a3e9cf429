/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/gce_bench.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char configuration[] =
    "providers:\n  gcp:\n"
    "    quota: 5\n"
    "    gpu_quotas: {NVIDIA_T4_GPUS: 3, PREEMPTIBLE_NVIDIA_T4_GPUS: 1, NVIDIA_V100_GPUS: 2, "
    "GPUS_ALL_REGIONS: 4}\n"
    "    service_accounts:\n"
    "      - {email: agent@my-project.iam.gserviceaccount.com}\n"
    "      - {email: viewer@my-project.iam.gserviceaccount.com, role: viewer, public_key: "
    "somebody.pem}\n"
    "      - {email: nobody@my-project.iam.gserviceaccount.com, role: none, public_key: "
    "somebody.pem}\n"
    "    pools:\n"
    "      - zone: [us-central1-a, us-central1-b]\n"
    "        type: [g2-standard-4, n2-standard-8]\n"
    "        spot: {capacity: 2, usd_per_hour: 0.36}\n"
    "        on_demand: {usd_per_hour: 0.72}\n"
    "      - zone: us-central1-a\n"
    "        type: [n1-standard-8+t4, n1-standard-16+2xt4, n1-standard-8+v100]\n"
    "        spot: {capacity: 2}\n"
    "        on_demand: {capacity: 3}\n"
    "      - {zone: us-central1-b, type: n1-standard-16}\n";

void bench_start(struct gce_bench *b, int64_t rate_limit)
{
    struct err e;
    void *state = NULL;
    log_set_level(LOG_ERROR);
    *b = (struct gce_bench){.now = {BENCH_START_MS}};
    if (config_parse(
            BENCH_DIR "/emulator.yaml", configuration, strlen(configuration), &b->config, &e) < 0)
        fail_msg("%s", e.text);
    struct provider_config *p = &b->config.providers[0];
    region_init(&b->region, &p->region, &b->journal, p->pools, p->n_pools, NULL, NULL, b->now);
    p->pools = NULL;
    p->n_pools = 0;
    b->setup = (struct front_setup){.region = &b->region,
        .options = p->options,
        .dir = "/nonexistent",
        .role_ttl_ms = SECONDS_MS(3600)};
    if (p->front->open(&b->setup, &state, &e) < 0)
        fail_msg("%s", e.text);
    b->gce = state;
    b->gce->rate_limit = rate_limit;
    bench_token(b, BENCH_AGENT, true, b->token);
}

void bench_stop(struct gce_bench *b)
{
    front_answer_clear(&b->last);
    region_deinit(&b->region);
    journal_deinit(&b->journal);
    b->config.providers[0].front->close(b->gce);
    config_deinit(&b->config);
}

void bench_advance(struct gce_bench *b, int64_t ms)
{
    b->now.ms += ms;
    region_advance(&b->region, b->now);
}

void bench_token(struct gce_bench *b, const char *email, bool has_scope, char out[GCE_TOKEN_MAX])
{
    const struct gce_caller caller = {
        .account = gce_auth_find(&b->gce->auth, email), .has_scope = has_scope};
    assert_non_null(caller.account);
    str_copy(out, GCE_TOKEN_MAX,
        gce_auth_issue(&b->gce->auth, &caller, "", SECONDS_MS(3600), b->now)->text);
}

static int ask(struct gce_bench *b, struct instance *i, const struct front_request *r)
{
    static const unsigned char secret[FRONT_SECRET_BYTES];
    const struct front *front = b->config.providers[0].front;
    const struct front_site site = {.region = &b->region,
        .state = b->gce,
        .now = b->now,
        .clock = b->now,
        .instance = i,
        .secret = secret};
    front_answer_clear(&b->last);
    region_advance(&b->region, b->now);
    if (i)
        front->metadata(&site, r, &b->last.reply);
    else
        front->api(&site, r, &b->last.reply);
    front_answer_parse(&b->last, GCE_BODY_MAX);
    return b->last.reply.status;
}

static void split(const char *target, char path[1024])
{
    snprintf(path, 1024, "%.*s", (int)strcspn(target, "?"), target);
}

int bench_call(struct gce_bench *b, const char *method, const char *target, const char *body)
{
    char path[1024];
    char *bearer = mem_printf("Bearer %s", b->token);
    const struct http_header headers[] = {{"Host", "127.0.0.1:1"}, {"authorization", bearer}};
    split(target, path);
    const struct front_request r = {.method = method,
        .path = path,
        .target = target,
        .headers = headers,
        .n_headers = b->token[0] ? 2 : 1,
        .body = body,
        .body_len = strlen(body)};
    int status = ask(b, NULL, &r);
    free(bearer);
    return status;
}

void bench_expect(struct gce_bench *b, const char *method, const char *target, const char *body,
    int status, const char *text)
{
    bench_call(b, method, target, body);
    front_answer_expect(&b->last, method, target, body, status, text);
}

const char *bench_text(const struct gce_bench *b, const char *path)
{
    return front_answer_text(&b->last, path);
}

const char *bench_body(const char *name, const char *more)
{
    static char text[8192];
    snprintf(text, sizeof(text),
        "{\"name\":\"%s\",\"machineType\":\"zones/us-central1-a/machineTypes/n2-standard-8\","
        "\"disks\":[{\"boot\":true,\"autoDelete\":true,\"initializeParams\":{\"sourceImage\":"
        "\"projects/debian-cloud/global/images/family/debian-12\",\"diskSizeGb\":\"100\"}}],"
        "\"networkInterfaces\":[{\"network\":\"global/networks/default\"}]%s%s}",
        name,
        strstr(more, "\"scheduling\"") ? ""
                                       : ",\"scheduling\":{\"provisioningModel\":\"SPOT\","
                                         "\"instanceTerminationAction\":\"DELETE\"}",
        more);
    return text;
}

struct instance *bench_run(struct gce_bench *b, const char *name, const char *more)
{
    bench_expect(b, "POST", BENCH_ZONE "instances", bench_body(name, more), 200, "\"insert\"");
    bench_advance(b, 1000);
    struct instance *i = b->region.instances[b->region.n_instances - 1];
    assert_string_equal(i->reservation->spec.name, name);
    assert_int_equal(i->state, INSTANCE_RUNNING);
    return i;
}

int bench_metadata(struct gce_bench *b, struct instance *i, const char *target)
{
    char path[1024];
    static const struct http_header headers[] = {{"Metadata-Flavor", "Google"}};
    split(target, path);
    const struct front_request r = {
        .method = "GET", .path = path, .target = target, .headers = headers, .n_headers = 1};
    return ask(b, i, &r);
}
