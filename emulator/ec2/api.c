/* SPDX-License-Identifier: Apache-2.0
 *
 * Dispatch, errors, and helpers shared by all actions.
 */
#include "emulator/ec2/ec2.h"
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "emulator/xml_write.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XML_HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define NAMESPACE "http://ec2.amazonaws.com/doc/" EC2_VERSION "/"

static const struct {
    const char *name;
    int (*run)(struct ec2_call *c);
} actions[] = {
    {"RunInstances", ec2_run_instances},
    {"CreateLaunchTemplate", ec2_create_launch_template},
    {"DescribeLaunchTemplates", ec2_describe_launch_templates},
    {"DeleteLaunchTemplate", ec2_delete_launch_template},
    {"CreateFleet", ec2_create_fleet},
    {"DescribeInstances", ec2_describe_instances},
    {"DescribeInstanceStatus", ec2_describe_instance_status},
    {"DescribeVolumes", ec2_describe_volumes},
    {"TerminateInstances", ec2_terminate_instances},
    {"DescribeSpotPriceHistory", ec2_describe_spot_price_history},
    {"GetSpotPlacementScores", ec2_get_spot_placement_scores},
    {"DescribeSpotInstanceRequests", ec2_describe_spot_instance_requests},
    {"DescribeAvailabilityZones", ec2_describe_availability_zones},
    {"CreateTags", ec2_create_tags},
    {"GetConsoleOutput", ec2_get_console_output},
};
#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

/* Codes with an HTTP status other than 400, and messages for tests that request the code alone. */
static const struct {
    const char *code;
    int status;
    const char *text;
} errors[] = {
    {"InsufficientInstanceCapacity", 500,
        "There is no capacity available that matches your request."},
    {"UnfulfillableCapacity", 500,
        "There is no Spot capacity available that matches your request."},
    {"InsufficientHostCapacity", 500, "There is not enough capacity to fulfill your request."},
    {"InternalError", 500, "An internal error has occurred"},
    {"InternalFailure", 500, "The request processing has failed due to some unknown error."},
    {"Unavailable", 503, "The server is overloaded and can't handle the request."},
    {"ServiceUnavailable", 503, "The request has failed due to a temporary failure of the server."},
    {"RequestLimitExceeded", 503, "Request limit exceeded."},
    {"EC2ThrottledException", 503, "Request limit exceeded."},
    {"Throttling", 503, "Rate exceeded"},
    {"AuthFailure", 401, "AWS was not able to validate the provided access credentials"},
    {"UnauthorizedOperation", 403, "You are not authorized to perform this operation."},
    {"SignatureDoesNotMatch", 403,
        "The request signature we calculated does not match the signature you provided. Check your "
        "AWS Secret Access Key and signing method. Consult the service documentation for details."},
    {"DryRunOperation", 412, "Request would have succeeded, but DryRun flag is set."},
    {"RequestExpired", 400, "Request has expired."},
    {"MaxSpotInstanceCountExceeded", 400, "Max spot instance count exceeded"},
    {"VcpuLimitExceeded", 400,
        "You have requested more vCPU capacity than your current vCPU limit allows for the "
        "instance bucket that the "
        "specified instance type belongs to."},
    {"InstanceLimitExceeded", 400, "Your quota allows for 0 more running instance(s)."},
};

void ec2_make_request_id(struct region *r, char out[EC2_REQUEST_ID_MAX])
{
    uint64_t a = prng_u64(&r->request_ids), b = prng_u64(&r->request_ids);
    snprintf(out, EC2_REQUEST_ID_MAX, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
        (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
        (unsigned)(0x8000 | (b >> 48 & 0x3fff)), (unsigned long long)(b & 0xffffffffffffULL));
}

void ec2_api_error(struct region *r, const char *code, const char *text, struct ec2_reply *reply)
{
    if (!reply->request_id[0])
        ec2_make_request_id(r, reply->request_id);
    reply->status = 400;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (!str_eq(errors[i].code, code))
            continue;
        reply->status = errors[i].status;
        text = text ? text : errors[i].text;
    }
    STR_COPY(reply->code, code);
    STR_COPY(reply->message, text ? text : code);
    struct buf *b = &reply->body;
    buf_clear(b);
    buf_adds(b, XML_HEAD "<Response><Errors><Error>");
    xmlw_leaf(b, "Code", code);
    xmlw_leaf(b, "Message", text ? text : code);
    buf_adds(b, "</Error></Errors>");
    xmlw_leaf(b, "RequestID", reply->request_id);
    buf_adds(b, "</Response>");
}

int ec2_fail(struct ec2_call *c, const char *code, const char *fmt, ...)
{
    char text[1024];
    VFORMAT(text, fmt);
    ec2_api_error(c->region, code, text, c->reply);
    return -1;
}

static void call_action(struct ec2_call *c, int (*run)(struct ec2_call *c))
{
    struct buf *b = &c->reply->body;
    buf_printf(b, XML_HEAD "<%sResponse xmlns=\"" NAMESPACE "\">", c->action);
    xmlw_leaf(b, "requestId", c->reply->request_id);
    if (run(c) < 0)
        return;
    buf_printf(b, "</%sResponse>", c->action);
}

void ec2_api_call(struct region *r, const struct ec2_account *account, struct form *form,
    struct wall now, struct ec2_reply *reply)
{
    region_advance(r, now);
    *reply = (struct ec2_reply){.status = 200};
    ec2_make_request_id(r, reply->request_id);
    struct ec2_call c = {.region = r, .account = account, .form = form, .now = now, .reply = reply};
    const char *version = form_get(form, "Version");
    c.action = form_get(form, "Action");
    if (!c.action || !c.action[0]) {
        ec2_fail(&c, "MissingAction", "The request must contain the parameter Action");
        return;
    }
    if (!str_eq(version, EC2_VERSION)) {
        ec2_fail(&c, "NoSuchVersion",
            "The requested version (%.40s) of service AmazonEC2 does not exist; this emulator "
            "has " EC2_VERSION,
            version ? version : "none");
        return;
    }
    for (size_t i = 0; i < N_ACTIONS; i++)
        if (str_eq(actions[i].name, c.action)) {
            call_action(&c, actions[i].run);
            return;
        }
    ec2_fail(&c, "InvalidAction", "The action %.100s is not valid for this web service.", c.action);
}

/* ---- Parameters ---- */

int ec2_required(struct ec2_call *c, const char *name, const char **ret_value)
{
    const char *value = form_get(c->form, "%s", name);
    if (!value || !value[0])
        return ec2_fail(c, "MissingParameter", "The request must contain the parameter %s", name);
    *ret_value = value;
    return 0;
}

int ec2_integer(struct ec2_call *c, const char *name, int64_t min, int64_t max, int64_t fallback,
    int64_t *ret_n)
{
    const char *value = form_get(c->form, "%s", name);
    *ret_n = fallback;
    if (value && str_to_i64(value, min, max, name, ret_n, NULL) < 0)
        return ec2_fail(c, "InvalidParameterValue",
            "Value (%.60s) for parameter %s is invalid. Expecting a number "
            "between %lld and %lld.",
            value, name, (long long)min, (long long)max);
    return 0;
}

int ec2_boolean(struct ec2_call *c, const char *name, bool fallback, bool *ret_yes)
{
    const char *value = form_get(c->form, "%s", name);
    *ret_yes = value ? str_eq(value, "true") : fallback;
    if (value && !*ret_yes && !str_eq(value, "false"))
        return ec2_fail(c, "InvalidParameterValue",
            "Value (%.60s) for parameter %s is invalid. Must be one of true, false.", value, name);
    return 0;
}

int ec2_params_end(struct ec2_call *c)
{
    bool is_dry;
    if (ec2_boolean(c, "DryRun", false, &is_dry) < 0)
        return -1;
    const char *unknown = form_unused(c->form);
    if (unknown)
        return ec2_fail(c, "UnknownParameter", "The parameter %.100s is not recognized", unknown);
    if (is_dry) {
        ec2_api_error(c->region, "DryRunOperation", NULL, c->reply);
        return -1;
    }
    return 0;
}

/* ---- Pages ---- */

#define PAGE_PREFIX "after:"

int ec2_read_page(struct ec2_call *c, int64_t min, int64_t max, struct ec2_page *ret_page)
{
    struct ec2_page page = {.is_paged = form_get(c->form, "MaxResults") != NULL};
    if (ec2_integer(c, "MaxResults", min, max, max, &page.max) < 0)
        return -1;
    if (c->account->page > 0 && page.max > c->account->page)
        page.max = c->account->page;
    const char *token = form_get(c->form, "NextToken");
    if (token && token[0]) {
        struct buf text = {0};
        int rc = b64_decode(&text, token, strlen(token), NULL);
        const char *s = buf_str(&text);
        if (rc == 0)
            rc = str_starts(s, PAGE_PREFIX)
                     ? str_to_i64(s + strlen(PAGE_PREFIX), 0, INT64_MAX, "token", &page.after, NULL)
                     : -1;
        buf_deinit(&text);
        if (rc < 0)
            return ec2_fail(c, "InvalidNextToken", "The specified NextToken is not valid.");
    }
    *ret_page = page;
    return 0;
}

void ec2_next_token(struct buf *b, int64_t last)
{
    struct buf token = {0};
    char text[40];
    int n = snprintf(text, sizeof(text), PAGE_PREFIX "%lld", (long long)last);
    b64_encode(&token, text, (size_t)n);
    xmlw_leaf(b, "nextToken", buf_str(&token));
    buf_deinit(&token);
}

/* ---- Filters ---- */

static int read_filter(struct ec2_call *c, size_t k, struct ec2_filter *f)
{
    for (;;) {
        const char *value = form_get(c->form, "Filter.%zu.Value.%zu", k, f->n_values + 1);
        if (!value)
            break;
        if (f->n_values == EC2_VALUES_MAX)
            return ec2_fail(
                c, "FilterLimitExceeded", "A filter may have at most %d values.", EC2_VALUES_MAX);
        f->values[f->n_values++] = value;
    }
    if (f->n_values == 0)
        return ec2_fail(c, "InvalidParameterValue", "The filter '%.100s' has no values", f->name);
    return 0;
}

int ec2_read_filters(struct ec2_call *c, struct ec2_filters *ret_filters)
{
    struct ec2_filters fs = {0};
    const char *name;
    while ((name = form_get(c->form, "Filter.%zu.Name", fs.n + 1))) {
        if (fs.n == EC2_FILTERS_MAX) {
            free(fs.list);
            return ec2_fail(c, "FilterLimitExceeded", "A request may have at most %d filters.",
                EC2_FILTERS_MAX);
        }
        fs.list = mem_resize(fs.list, fs.n + 1, sizeof(*fs.list));
        fs.list[fs.n] = (struct ec2_filter){.name = name};
        if (read_filter(c, fs.n + 1, &fs.list[fs.n]) < 0) {
            free(fs.list);
            return -1;
        }
        fs.n++;
    }
    *ret_filters = fs;
    return 0;
}

/* Linear: after a mismatch only the last * is retried. */
static bool glob_matches(const char *p, const char *s)
{
    const char *star = NULL, *retry = NULL;
    while (*s) {
        bool is_literal = *p == '\\' && p[1];
        if (*p == '*') {
            star = p++;
            retry = s;
        } else if (*p && (is_literal ? p[1] == *s : *p == '?' || *p == *s)) {
            p += is_literal ? 2 : 1;
            s++;
        } else if (star) {
            p = star + 1;
            s = ++retry;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return !*p;
}

bool ec2_filter_matches(const struct ec2_filter *f, const char *value)
{
    for (size_t i = 0; i < f->n_values; i++)
        if (glob_matches(f->values[i], value))
            return true;
    return false;
}

/* ---- Helpers ---- */

void ec2_iso(struct buf *b, const char *name, struct wall w)
{
    char iso[TIME_ISO_MAX];
    time_format_iso((struct wall){w.ms / 1000 * 1000}, iso);
    iso[strcspn(iso, "Z")] = '\0';
    xmlw_printf(b, name, "%s.000Z", iso);
}

void ec2_zone_id(const char *zone, char *out, size_t size)
{
    /* "us-east-1a": two letters of the first word, one of each further word, the digits, the zone's
     * letter. */
    char region[32] = "";
    size_t n = 0, word = 0, at = 0;
    const char *p = zone;
    for (; *p && n + 1 < sizeof(region); p++) {
        if (*p == '-') {
            word++;
            at = 0;
            continue;
        }
        bool is_digit = *p >= '0' && *p <= '9';
        bool is_zone = !is_digit && p[1] == '\0';
        if (is_zone)
            break;
        if (is_digit || at++ < (word == 0 ? 2u : 1u))
            region[n++] = *p;
    }
    region[n] = '\0';
    snprintf(out, size, "%s-az%d", region, *p >= 'a' && *p <= 'z' ? *p - 'a' + 1 : 1);
}

void ec2_tags_xml(struct buf *b, const struct tags *tags)
{
    xmlw_open(b, "tagSet");
    for (size_t i = 0; i < tags->n; i++) {
        xmlw_open(b, "item");
        xmlw_leaf(b, "key", tags->list[i].key);
        xmlw_leaf(b, "value", tags->list[i].value);
        xmlw_close(b, "item");
    }
    xmlw_close(b, "tagSet");
}

int ec2_read_tags(struct ec2_call *c, const char *prefix, struct tags *tags)
{
    for (size_t k = 1; k <= INSTANCE_TAGS_MAX; k++) {
        const char *key = form_get(c->form, "%sTag.%zu.Key", prefix, k);
        const char *value = form_get(c->form, "%sTag.%zu.Value", prefix, k);
        if (!key)
            return 0;
        if (!key[0] || strlen(key) > INSTANCE_TAG_KEY_MAX || str_starts(key, "aws:") ||
            (value && strlen(value) > INSTANCE_TAG_VALUE_MAX))
            return ec2_fail(
                c, "InvalidParameterValue", "Tag key '%.140s' or its value is not valid.", key);
        tags_set(tags, key, value ? value : "");
    }
    return 0;
}
