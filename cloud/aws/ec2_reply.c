/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts EC2's replies to rows. See ec2.h. A row that cannot be parsed fails the whole reply: an
 * incomplete listing would make an existing machine look gone.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "cloud/console.h"
#include "cloud/xml.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASON_MAX 256

enum {
    STATE_PENDING = 0,
    STATE_RUNNING = 16,
    STATE_SHUTTING_DOWN = 32,
    STATE_TERMINATED = 48,
    STATE_STOPPING = 64,
    STATE_STOPPED = 80
};

static int open_reply(struct xml *x, const char *body, size_t n, const char *root, struct err *e)
{
    int rc = xml_open(x, body, n, e);
    if (rc == 0 && strcmp(xml_name(xml_root(x)), root) != 0) {
        rc = err_set(e, ERR_INVALID, "expected <%s>, found <%.64s>", root, xml_name(xml_root(x)));
        xml_close(x);
    }
    return rc == 0 ? 0 : err_wrap(e, "EC2's reply");
}

static int close_reply(struct xml *x, int rc, struct err *e)
{
    xml_close(x);
    return rc == 0 ? 0 : err_wrap(e, "EC2's reply");
}

static int required_text(
    const struct xml_node *node, const char *name, char *dst, size_t size, struct err *e)
{
    int rc = xml_text(node, name, dst, size, e);
    if (rc == 0 && !*dst)
        rc = err_set(e, ERR_INVALID, "<%s> has no <%s>", xml_name(node), name);
    return rc;
}

#define REQUIRED_TEXT(node, name, dst, e) required_text((node), (name), (dst), sizeof(dst), (e))
#define OPTIONAL_TEXT(node, name, dst, e) xml_text((node), (name), (dst), sizeof(dst), (e))

static int parse_time(
    const struct xml_node *node, const char *name, struct wall *ret, struct err *e)
{
    char text[TIME_ISO_MAX + 8];
    int rc = OPTIONAL_TEXT(node, name, text, e);
    *ret = WALL_NONE;
    if (rc == 0 && *text)
        rc = time_parse_iso(text, ret, e);
    return rc;
}

/* The code in <instanceState> and the like, without its opaque high byte. */
static int parse_state_code(const struct xml_node *state, int64_t *ret_code, struct err *e)
{
    char text[16];
    int rc = state ? REQUIRED_TEXT(state, "code", text, e)
                   : err_set(e, ERR_INVALID, "<item> has no state");
    if (rc == 0)
        rc = str_to_i64(text, 0, 65535, "instance state code", ret_code, e);
    if (rc == 0)
        *ret_code &= 0xff;
    return rc;
}

/* A stopped instance counts as stopping: it still exists, its disk is billed, and it has to be
 * terminated. */
static int parse_state(const struct xml_node *item, enum cloud_state *ret_state, struct err *e)
{
    int64_t code;
    int rc = parse_state_code(xml_child(item, "instanceState"), &code, e);
    if (rc != 0)
        return rc;
    switch (code) {
    case STATE_PENDING:
        *ret_state = CLOUD_PENDING;
        return 0;
    case STATE_RUNNING:
        *ret_state = CLOUD_RUNNING;
        return 0;
    case STATE_SHUTTING_DOWN:
    case STATE_STOPPING:
    case STATE_STOPPED:
        *ret_state = CLOUD_STOPPING;
        return 0;
    case STATE_TERMINATED:
        *ret_state = CLOUD_GONE;
        return 0;
    default:
        return err_set(e, ERR_INVALID, "instance state code %lld is unknown", (long long)code);
    }
}

/* EC2 gives the time only inside a text ("User initiated (2026-08-22 12:02:00 GMT)"). Billing ends
 * at that time, not when the machine is down. A text without a time is not an error. */
static struct wall parse_transition_time(const char *reason)
{
    const char *open = strrchr(reason, '(');
    char iso[TIME_ISO_MAX];
    struct wall at;
    if (!open || !str_ends(open, " GMT)") || strlen(open) != strlen("(2026-08-22 12:02:00 GMT)"))
        return WALL_NONE;
    snprintf(iso, sizeof(iso), "%.10sT%.8sZ", open + 1, open + 12);
    return open[11] == ' ' && time_parse_iso(iso, &at, NULL) == 0 ? at : WALL_NONE;
}

/* Reads why and when it ends. `reclaimed` is set from the reason's code; EC2's text is kept for
 * people. */
static int parse_reason(const struct xml_node *item, struct cloud_instance *i, struct err *e)
{
    const struct xml_node *reason = xml_child(item, "stateReason");
    char code[64];
    int rc = OPTIONAL_TEXT(reason, "code", code, e);
    if (rc != 0)
        return rc;
    bool is_ending = i->state == CLOUD_STOPPING || i->state == CLOUD_GONE;
    i->reclaimed = is_ending && str_starts(code, "Server.Spot");
    if (is_ending) {
        char words[REASON_MAX];
        xml_text_cut(item, "reason", words, sizeof(words));
        i->ended_at = parse_transition_time(words);
    }
    xml_text_cut(reason, "message", i->reason, sizeof(i->reason));
    if (!i->reason[0])
        STR_COPY(i->reason, code);
    return 0;
}

/* Reads our tags and, if name is not NULL, the resource's name (CLOUD_VOLUME_NAME_MAX). Other tags
 * may be longer than our buffers. */
static int parse_tags(const struct xml_node *item, char cluster[CLOUD_NAME_MAX],
    char token[CLOUD_TOKEN_MAX], char *name, struct err *e)
{
    const struct xml_node *set = xml_child(item, "tagSet");
    int rc = 0;
    for (const struct xml_node *tag = xml_child(set, "item"); tag && rc == 0; tag = xml_next(tag)) {
        char key[128];
        xml_text_cut(tag, "key", key, sizeof(key));
        if (str_eq(key, EC2_TAG_CLUSTER))
            rc = xml_text(tag, "value", cluster, CLOUD_NAME_MAX, e);
        else if (str_eq(key, EC2_TAG_INSTANCE))
            rc = xml_text(tag, "value", token, CLOUD_TOKEN_MAX, e);
        else if (name && str_eq(key, "Name"))
            xml_text_cut(tag, "value", name, CLOUD_VOLUME_NAME_MAX);
    }
    return rc;
}

/* Its vCPUs as they count against quotas; EC2 leaves them out of some replies. */
static int parse_vcpus(const struct xml_node *item, int32_t *ret_vcpus, struct err *e)
{
    const struct xml_node *cpu = xml_child(item, "cpuOptions");
    char cores[16], threads[16];
    int64_t n_cores = 0, n_threads = 0;
    if (!cpu)
        return 0;
    int rc = REQUIRED_TEXT(cpu, "coreCount", cores, e);
    if (rc == 0)
        rc = REQUIRED_TEXT(cpu, "threadsPerCore", threads, e);
    if (rc == 0)
        rc = str_to_i64(cores, 0, 100000, "coreCount", &n_cores, e);
    if (rc == 0)
        rc = str_to_i64(threads, 0, 1000, "threadsPerCore", &n_threads, e);
    *ret_vcpus = (int32_t)(n_cores * n_threads);
    return rc;
}

static int parse_instance(const struct xml_node *item, struct cloud_instance *i, struct err *e)
{
    char life_cycle[32];
    *i = (struct cloud_instance){.launched_at = WALL_NONE, .ended_at = WALL_NONE};
    int rc = REQUIRED_TEXT(item, "instanceId", i->id, e);
    if (rc == 0)
        rc = parse_state(item, &i->state, e);
    if (rc == 0)
        rc = OPTIONAL_TEXT(item, "instanceType", i->type, e);
    if (rc == 0)
        rc = OPTIONAL_TEXT(xml_child(item, "placement"), "availabilityZone", i->zone, e);
    if (rc == 0)
        rc = OPTIONAL_TEXT(item, "instanceLifecycle", life_cycle, e);
    if (rc == 0)
        rc = parse_time(item, "launchTime", &i->launched_at, e);
    if (rc == 0)
        rc = parse_vcpus(item, &i->vcpus, e);
    if (rc == 0)
        rc = parse_reason(item, i, e);
    if (rc == 0)
        rc = OPTIONAL_TEXT(item, "clientToken", i->token, e);
    if (rc == 0)
        rc = parse_tags(item, i->cluster, i->token, NULL, e);
    if (rc == 0)
        i->market = str_eq(life_cycle, "spot") ? CLOUD_SPOT : CLOUD_ON_DEMAND;
    else
        err_wrap(e, "instance \"%s\"", i->id);
    return rc;
}

int ec2_parse_run_instances(
    const char *body, size_t n, struct cloud_instance *ret_instance, struct err *e)
{
    struct xml x;
    struct cloud_instance i;
    int rc = open_reply(&x, body, n, "RunInstancesResponse", e);
    if (rc != 0)
        return rc;
    const struct xml_node *item = xml_child(xml_child(xml_root(&x), "instancesSet"), "item");
    if (!item)
        rc = err_set(e, ERR_INVALID, "<RunInstancesResponse> has no instance");
    else if (xml_next(item))
        rc =
            err_set(e, ERR_INVALID, "<RunInstancesResponse>: more than the one requested instance");
    else
        rc = parse_instance(item, &i, e);
    if (rc == 0)
        *ret_instance = i;
    return close_reply(&x, rc, e);
}

/* ---- fleets ---- */

/* A final error of a fleet: retries under its token would give the same. */
static void make_definite(struct err *e)
{
    if (e->kind != ERR_QUOTA && e->kind != ERR_DENIED && e->kind != ERR_CONFIG)
        e->kind = ERR_NO_CAPACITY;
}

static int parse_override(const struct xml_node *item, char *zone, char *type, struct err *e)
{
    const struct xml_node *o =
        xml_child(xml_child(item, "launchTemplateAndOverrides"), "overrides");
    int rc = xml_text(o, "availabilityZone", zone, CLOUD_NAME_MAX, e);
    return rc == 0 ? xml_text(o, "instanceType", type, CLOUD_NAME_MAX, e) : rc;
}

static int parse_fleet_error(const struct xml_node *item, struct ec2_fleet *f, struct err *e)
{
    char code[EC2_ERROR_CODE_MAX], message[256];
    struct ec2_fleet_error *error = &f->errors[f->n_errors];
    if (f->n_errors == EC2_FLEET_ERRORS_MAX)
        return 0;
    int rc = REQUIRED_TEXT(item, "errorCode", code, e);
    if (rc == 0)
        rc = parse_override(item, error->zone, error->type, e);
    if (rc != 0)
        return rc;
    xml_text_cut(item, "errorMessage", message, sizeof(message));
    ec2_refusal(code, message, &error->e);
    make_definite(&error->e);
    f->n_errors++;
    return 0;
}

static int parse_fleet_instance(const struct xml_node *item, struct ec2_fleet *f, struct err *e)
{
    struct cloud_instance *i = &f->instance;
    const struct xml_node *id = xml_child(xml_child(item, "instanceIds"), "item");
    if (!id)
        return 0;
    if (i->id[0] || xml_next(id))
        return err_set(
            e, ERR_INVALID, "<CreateFleetResponse>: more than the one requested instance");
    int rc = parse_override(item, i->zone, i->type, e);
    if (rc == 0)
        rc = xml_text(xml_child(item, "instanceIds"), "item", i->id, sizeof(i->id), e);
    if (rc == 0 && !i->id[0])
        rc = err_set(e, ERR_INVALID, "<instanceIds>: an instance without an id");
    if (rc == 0 && xml_child(item, "instanceType"))
        rc = OPTIONAL_TEXT(item, "instanceType", i->type, e);
    i->state = CLOUD_PENDING;
    i->launched_at = i->ended_at = WALL_NONE;
    return rc;
}

int ec2_parse_create_fleet(const char *body, size_t n, struct ec2_fleet *ret_fleet, struct err *e)
{
    struct xml x;
    int rc = open_reply(&x, body, n, "CreateFleetResponse", e);
    if (rc != 0)
        return rc;
    struct ec2_fleet *f = mem_alloc(sizeof(*f));
    const struct xml_node *item = xml_child(xml_child(xml_root(&x), "errorSet"), "item");
    for (; item && rc == 0; item = xml_next(item))
        rc = parse_fleet_error(item, f, e);
    item = xml_child(xml_child(xml_root(&x), "fleetInstanceSet"), "item");
    for (; item && rc == 0; item = xml_next(item))
        rc = parse_fleet_instance(item, f, e);
    if (rc == 0)
        *ret_fleet = *f;
    free(f);
    return close_reply(&x, rc, e);
}

int ec2_parse_launch_templates(
    const char *body, size_t n, struct wall before, struct ec2_names *ret_names, struct err *e)
{
    struct xml x;
    struct ec2_names names = {0};
    int rc = open_reply(&x, body, n, "DescribeLaunchTemplatesResponse", e);
    if (rc != 0)
        return rc;
    const struct xml_node *item = xml_child(xml_child(xml_root(&x), "launchTemplates"), "item");
    for (; item && rc == 0 && names.n < EC2_NAMES_MAX; item = xml_next(item)) {
        struct wall made;
        rc = REQUIRED_TEXT(item, "launchTemplateName", names.list[names.n], e);
        if (rc == 0)
            rc = parse_time(item, "createTime", &made, e);
        /* a template of another owner with our cluster's tag is not deleted */
        if (rc == 0 && wall_is_set(made) && made.ms < before.ms &&
            str_starts(names.list[names.n], EC2_TEMPLATE_PREFIX))
            names.n++;
    }
    if (rc == 0)
        *ret_names = names;
    return close_reply(&x, rc, e);
}

int ec2_parse_done(const char *body, size_t n, const char *root, struct err *e)
{
    struct xml x;
    int rc = open_reply(&x, body, n, root, e);
    return rc == 0 ? close_reply(&x, 0, e) : rc;
}

#define CONSOLE_CODED_MAX (96 * 1024) /* base64 of 64 KiB */

static int decode_console(char *coded, struct buf *out, struct err *e)
{
    size_t n = 0;
    for (const char *p = coded; *p; p++)
        if (!strchr(" \t\r\n", *p))
            coded[n++] = *p;
    coded[n] = '\0';
    unsigned char *raw = mem_alloc(n + 1);
    int got = n % 4 == 0 ? EVP_DecodeBlock(raw, (const unsigned char *)coded, (int)n) : -1;
    if (got < 0) {
        free(raw);
        return err_set(e, ERR_INVALID, "<output> is not base64");
    }
    size_t padding = n > 1 && coded[n - 2] == '=' ? 2 : n > 0 && coded[n - 1] == '=';
    cloud_console_clean((const char *)raw, (size_t)got - padding, out);
    OPENSSL_cleanse(raw, n);
    free(raw);
    return 0;
}

int ec2_parse_get_console_output(const char *body, size_t n, struct buf *out, struct err *e)
{
    struct xml x;
    int rc = open_reply(&x, body, n, "GetConsoleOutputResponse", e);
    if (rc != 0)
        return rc;
    char *coded = mem_alloc(CONSOLE_CODED_MAX);
    rc = xml_text(xml_root(&x), "output", coded, CONSOLE_CODED_MAX, e);
    if (rc == 0)
        rc = decode_console(coded, out, e);
    OPENSSL_cleanse(coded, CONSOLE_CODED_MAX);
    free(coded);
    return close_reply(&x, rc, e);
}

typedef int (*item_fn)(void *ctx, const struct xml_node *item, struct err *e);

/* Calls read for each item of the set in a reply; page becomes where the rest begins, or "". */
static int read_list(const char *body, size_t n, const char *reply, const char *set, item_fn read,
    void *ctx, char *page, struct err *e)
{
    struct xml x;
    int rc = open_reply(&x, body, n, reply, e);
    if (rc != 0)
        return rc;
    const struct xml_node *list = xml_child(xml_root(&x), set);
    if (!list)
        rc = err_set(e, ERR_INVALID, "<%s> has no <%s>", reply, set);
    for (const struct xml_node *item = xml_child(list, "item"); item && rc == 0;
         item = xml_next(item))
        rc = read(ctx, item, e);
    if (rc == 0)
        rc = xml_text(xml_root(&x), "nextToken", page, EC2_PAGE_TOKEN_MAX + 1, e);
    return close_reply(&x, rc, e);
}

/* Those that one launch made. */
static int add_reservation(void *ctx, const struct xml_node *reservation, struct err *e)
{
    int rc = 0;
    const struct xml_node *item = xml_child(xml_child(reservation, "instancesSet"), "item");
    for (; item && rc == 0; item = xml_next(item)) {
        struct cloud_instance i;
        rc = parse_instance(item, &i, e);
        if (rc == 0)
            rc = cloud_instances_add(ctx, &i, e);
    }
    return rc;
}

int ec2_parse_describe_instances(
    const char *body, size_t n, struct cloud_instances *list, char *page, struct err *e)
{
    return read_list(
        body, n, "DescribeInstancesResponse", "reservationSet", add_reservation, list, page, e);
}

static int parse_volume(const struct xml_node *item, struct cloud_volume *v, struct err *e)
{
    char size[24];
    *v = (struct cloud_volume){.since = WALL_NONE};
    int rc = REQUIRED_TEXT(item, "volumeId", v->id, e);
    if (rc == 0)
        rc = REQUIRED_TEXT(item, "size", size, e);
    if (rc == 0)
        rc = str_to_i64(size, 0, CLOUD_VOLUME_GIB_MAX, "size in GiB", &v->gib, e);
    if (rc == 0)
        rc = OPTIONAL_TEXT(item, "volumeType", v->type, e);
    if (rc == 0)
        rc = OPTIONAL_TEXT(item, "availabilityZone", v->zone, e);
    if (rc == 0)
        /* EC2 does not report when it was detached */
        rc = parse_time(item, "createTime", &v->since, e);
    if (rc == 0)
        rc = parse_tags(item, v->cluster, v->token, v->name, e);
    return rc == 0 ? 0 : err_wrap(e, "volume \"%s\"", v->id);
}

/* Whether the volume has a status and no attachment. */
static int add_volume(void *ctx, const struct xml_node *item, struct err *e)
{
    char status[32];
    struct cloud_volume v;
    int rc = REQUIRED_TEXT(item, "status", status, e);
    if (rc == 0)
        rc = parse_volume(item, &v, e);
    if (rc != 0 || !str_eq(status, "available") ||
        xml_child(xml_child(item, "attachmentSet"), "item"))
        return rc;
    return cloud_volumes_add(ctx, &v, e);
}

int ec2_parse_describe_volumes(
    const char *body, size_t n, struct cloud_volumes *list, char *page, struct err *e)
{
    return read_list(body, n, "DescribeVolumesResponse", "volumeSet", add_volume, list, page, e);
}

static bool is_ending(const struct xml_node *set, const char *id)
{
    for (const struct xml_node *item = xml_child(set, "item"); item; item = xml_next(item)) {
        char text[CLOUD_NAME_MAX];
        int64_t code;
        if (OPTIONAL_TEXT(item, "instanceId", text, NULL) != 0 || !str_eq(text, id))
            continue;
        return parse_state_code(xml_child(item, "currentState"), &code, NULL) == 0 &&
               (code == STATE_SHUTTING_DOWN || code == STATE_TERMINATED);
    }
    return false;
}

int ec2_parse_terminate_instances(
    const char *body, size_t n, const char *const *ids, size_t n_ids, struct err *e)
{
    struct xml x;
    int rc = open_reply(&x, body, n, "TerminateInstancesResponse", e);
    if (rc != 0)
        return rc;
    const struct xml_node *set = xml_child(xml_root(&x), "instancesSet");
    for (size_t i = 0; i < n_ids && rc == 0; i++)
        if (!is_ending(set, ids[i]))
            rc = err_set(e, ERR_INVALID, "the reply does not list %.64s as shutting down", ids[i]);
    return close_reply(&x, rc, e);
}

static int parse_price(const struct xml_node *item, struct cloud_price *p, struct err *e)
{
    char amount[32];
    *p = (struct cloud_price){.market = CLOUD_SPOT};
    int rc = REQUIRED_TEXT(item, "availabilityZone", p->zone, e);
    if (rc == 0)
        rc = REQUIRED_TEXT(item, "instanceType", p->type, e);
    if (rc == 0)
        rc = REQUIRED_TEXT(item, "spotPrice", amount, e);
    if (rc == 0)
        rc = str_to_uusd(amount, &p->uusd_h, e);
    if (rc == 0)
        rc = parse_time(item, "timestamp", &p->since, e);
    if (rc == 0 && !wall_is_set(p->since))
        rc = err_set(e, ERR_INVALID, "<item> has no <timestamp>");
    return rc;
}

static int keep_zone(
    struct ec2_zones *zones, const struct xml_node *item, const char *name, struct err *e)
{
    char id[CLOUD_NAME_MAX];
    int rc = OPTIONAL_TEXT(item, "availabilityZoneId", id, e);
    if (rc != 0 || !id[0])
        return rc;
    for (size_t i = 0; i < zones->n; i++)
        if (str_eq(zones->list[i].name, name))
            return 0;
    if (zones->n == EC2_ZONES_MAX)
        return err_set(e, ERR_INVALID, "more than %d zones", EC2_ZONES_MAX);
    STR_COPY(zones->list[zones->n].name, name);
    STR_COPY(zones->list[zones->n].id, id);
    zones->n++;
    return 0;
}

struct spot_prices {
    struct cloud_prices *list;
    struct ec2_zones *zones; /* may be NULL */
};

static int add_price(void *ctx, const struct xml_node *item, struct err *e)
{
    const struct spot_prices *to = ctx;
    struct cloud_price p;
    int rc = parse_price(item, &p, e);
    if (rc == 0)
        rc = cloud_prices_keep(to->list, &p, e);
    if (rc == 0 && to->zones)
        rc = keep_zone(to->zones, item, p.zone, e);
    return rc;
}

int ec2_parse_spot_prices(const char *body, size_t n, struct cloud_prices *list,
    struct ec2_zones *zones, char *page, struct err *e)
{
    struct spot_prices to = {.list = list, .zones = zones};
    return read_list(body, n, "DescribeSpotPriceHistoryResponse", "spotPriceHistorySet", add_price,
        &to, page, e);
}

static int add_score(void *ctx, const struct xml_node *item, struct err *e)
{
    struct ec2_scores *scores = ctx;
    char id[CLOUD_NAME_MAX], text[16];
    int64_t score;
    int rc = REQUIRED_TEXT(item, "availabilityZoneId", id, e);
    if (rc == 0)
        rc = REQUIRED_TEXT(item, "score", text, e);
    if (rc == 0)
        rc = str_to_i64(text, 1, EC2_SCORE_MAX, "score", &score, e);
    if (rc == 0 && scores->n == EC2_ZONES_MAX)
        rc = err_set(e, ERR_INVALID, "scores of more than %d zones", EC2_ZONES_MAX);
    if (rc != 0)
        return rc;
    STR_COPY(scores->list[scores->n].zone_id, id);
    scores->list[scores->n].score = (int)score;
    scores->n++;
    return 0;
}

int ec2_parse_placement_scores(
    const char *body, size_t n, struct ec2_scores *scores, char *page, struct err *e)
{
    return read_list(body, n, "GetSpotPlacementScoresResponse", "spotPlacementScoreSet", add_score,
        scores, page, e);
}
