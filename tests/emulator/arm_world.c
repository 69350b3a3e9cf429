/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/arm_world.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct arm_client clients[] = {{"belay", "s3cret"}};

static struct market_pool pool(const char *zone, const char *type, int64_t spot, int64_t on_demand)
{
    struct market_pool p = {.capacity = {spot, on_demand}, .price_uusd_h = {80000, 384000}};
    STR_COPY(p.zone, zone);
    STR_COPY(p.type, type);
    return p;
}

void arm_world_start(struct arm_world *w)
{
    log_set_level(LOG_ERROR);
    *w = (struct arm_world){.now = {ARM_START_MS},
        .options = {.provider = "azure",
            .name = "eastus",
            .account = SUBSCRIPTION,
            .seed = 7,
            .boot_delay_ms = BOOT_MS,
            .notice_ms = 30000},
        .account = {.subscription = SUBSCRIPTION, .page = 100, .retry_after_s = 1},
        .auth = {.tenant = TENANT,
            .clients = clients,
            .n_clients = 1,
            .token_ttl_ms = 3600000,
            .key = {1}}};
    struct market_pool *pools = mem_array(3, sizeof(*pools));
    pools[0] = pool("1", SIZE, 2, 1);
    pools[1] = pool("2", SIZE, 0, 0);
    pools[2] = pool("1", "Standard_F16s_v2", MARKET_UNLIMITED, MARKET_UNLIMITED);
    region_init(&w->region, &w->options, &w->journal, pools, 3, NULL, NULL, w->now);
    arm_init(&w->arm, &w->region, &w->account, &w->auth);
    struct buf token = {0};
    buf_adds(&token, "Bearer ");
    arm_auth_token(&w->auth, "belay", ARM_AUDIENCE, w->auth.token_ttl_ms, w->now, &token);
    w->authorization = buf_take(&token);
}

void arm_world_stop(struct arm_world *w)
{
    arm_reply_deinit(&w->reply);
    buf_deinit(&w->metadata.body);
    arm_deinit(&w->arm);
    region_deinit(&w->region);
    journal_deinit(&w->journal);
    free(w->authorization);
    free(w->operation);
}

void arm_world_advance(struct arm_world *w, int64_t ms)
{
    w->now.ms += ms;
    arm_advance(&w->arm, w->now);
}

char *arm_quoted(const char *text)
{
    char *copy = mem_strdup(text);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

char *arm_machine(const char *more, const char *properties)
{
    char *text = mem_printf(
        "{'location':'eastus','zones':['1'],'properties':{'priority':'Spot','evictionPolicy':'"
        "Delete',"
        "'billingProfile':{'maxPrice':-1},'hardwareProfile':{'vmSize':'" SIZE "'},"
        "'storageProfile':{'imageReference':{'publisher':'p','offer':'o','sku':'s','version':'"
        "latest'},'osDisk':{'createOption':'FromImage','deleteOption':'Delete'}},"
        "'osProfile':{'computerName':'c','adminUsername':'ops','customData':'IyEvYmluL3NoCg==',"
        "'linuxConfiguration':{'disablePasswordAuthentication':true,'ssh':{'publicKeys':[{'path':'/"
        "k','keyData':'ssh-ed25519 AA'}]}}},"
        "'networkProfile':{'networkApiVersion':'2020-11-01','networkInterfaceConfigurations':[{'"
        "name':'nic0',"
        "'properties':{'primary':true,'deleteOption':'Delete','ipConfigurations':[{'name':'ip0','"
        "properties':"
        "{'subnet':{'id':'" SUBNET "'}}}]}}]}%s%s}%s%s}",
        properties[0] ? "," : "", properties, more[0] ? "," : "", more);
    char *body = arm_quoted(text);
    free(text);
    return body;
}

int arm_ask(
    struct arm_world *w, const char *method, const char *path, const char *query, const char *body)
{
    const struct arm_request q = {.method = method,
        .path = path,
        .query = query,
        .base = "http://127.0.0.1:4711",
        .authorization = w->authorization,
        .body = body ? body : "",
        .body_len = body ? strlen(body) : 0};
    arm_reply_deinit(&w->reply);
    arm_call(&w->arm, &q, w->now, &w->reply);
    const char *operation = arm_reply_header(w, "Azure-AsyncOperation");
    if (operation) {
        free(w->operation);
        w->operation = mem_strdup(operation);
    }
    return w->reply.status;
}

void arm_expect(struct arm_world *w, const char *method, const char *path, const char *query,
    const char *body, int status, const char *text)
{
    int got = arm_ask(w, method, path, query, body);
    char *reply = arm_reply_text(&w->reply);
    if (got != status || !strstr(reply ? reply : "", text))
        fail_msg("%s %s?%s %s: expected %d with \"%s\", got %d: %s", method, path, query,
            body ? body : "", status, text, got, reply ? reply : "");
    free(reply);
}

const char *arm_reply_header(const struct arm_world *w, const char *name)
{
    for (size_t i = 0; i < w->reply.n_headers; i++)
        if (str_eq(w->reply.headers[i].name, name))
            return w->reply.headers[i].value;
    return NULL;
}

const char *arm_reply_str(const struct arm_world *w, const char *path)
{
    return arm_str_at(w->reply.body, path, "");
}

struct arm_resource *arm_run(struct arm_world *w, const char *name)
{
    char *path = mem_printf(VMS "/%s", name), *body = arm_machine("", "");
    arm_expect(w, "PUT", path, VERSION, body, 201, "Creating");
    arm_world_advance(w, BOOT_MS);
    free(path);
    free(body);
    struct arm_resource *vm = arm_find(&w->arm, ARM_KIND_VM, "lab", name);
    assert_non_null(vm);
    assert_int_equal(vm->state, ARM_SUCCEEDED);
    return vm;
}

const char *arm_operation_status(struct arm_world *w, char code[64])
{
    static const char *const known[] = {"InProgress", "Succeeded", "Failed", "Canceled", NULL};
    assert_non_null(w->operation);
    char *path = mem_strdup(strchr(w->operation + strlen("http://"), '/')),
         *query = strchr(path, '?');
    *query++ = '\0';
    arm_expect(w, "GET", path, query, NULL, 200, "startTime");
    free(path);
    if (code)
        str_copy(code, 64, arm_reply_str(w, "error.code"));
    for (size_t i = 0; known[i]; i++)
        if (str_eq(known[i], arm_reply_str(w, "status")))
            return known[i];
    return "?";
}

size_t arm_count(const struct arm_world *w, enum arm_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < w->arm.n_resources; i++)
        n += w->arm.resources[i]->kind == kind;
    return n;
}

int arm_look_as(
    struct arm_world *w, const struct arm_resource *vm, const struct arm_metadata_request *q)
{
    buf_deinit(&w->metadata.body);
    arm_metadata_answer(&w->arm, vm->instance, q, w->now, 86400000, &w->metadata);
    return w->metadata.status;
}

int arm_look(
    struct arm_world *w, const struct arm_resource *vm, const char *path, const char *query)
{
    const struct arm_metadata_request q = {
        .method = "GET", .path = path, .query = query, .metadata = "true", .body = ""};
    return arm_look_as(w, vm, &q);
}
