/* SPDX-License-Identifier: Apache-2.0
 *
 * DescribeInstances, DescribeInstanceStatus, TerminateInstances, CreateTags, GetConsoleOutput:
 * queries of and actions on existing instances.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include "emulator/xml_write.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDS_MAX 1000
#define PAGE_MIN 5
#define PAGE_MAX 1000
#define REMEMBERED_MS SECONDS_MS(3600) /* how long a terminated instance is shown */
#define CONSOLE_MAX (64 * 1024)

/* ---- Which instances ---- */

static bool is_remembered(const struct ec2_call *c, const struct instance *i)
{
    if (!region_is_visible(c->region, i, c->now))
        return false;
    return i->state != INSTANCE_TERMINATED || c->now.ms - i->gone_at.ms < REMEMBERED_MS;
}

static bool any_tag_matches(const struct ec2_filter *f, const struct tags *tags)
{
    for (size_t k = 0; k < tags->n; k++)
        if (ec2_filter_matches(f, tags->list[k].key))
            return true;
    return false;
}

static const char *market_text(const struct instance *i)
{
    return i->reservation->spec.market == CLOUD_SPOT ? "spot" : "";
}

/* Filters with a single text as value. NULL for an unknown filter. */
static const char *filtered_text(
    const struct instance *i, const char *name, char *scratch, size_t size)
{
    const struct launch_spec *s = &i->reservation->spec;
    const struct {
        const char *name, *value;
    } texts[] = {
        {"instance-id", i->id},
        {"instance-state-name", instance_state_name(i->state)},
        {"instance-type", i->pool->type},
        {"instance-lifecycle", market_text(i)},
        {"availability-zone", i->pool->zone},
        {"client-token", s->token},
        {"spot-instance-request-id", i->spot_request_id},
        {"state-reason-code", i->reason_code},
        {"image-id", s->image},
        {"key-name", s->key_name},
        {"private-ip-address", i->private_ip},
        {"reservation-id", i->reservation->id},
        {"subnet-id", s->subnet},
        {"vpc-id", ""},
    };
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
        if (str_eq(texts[k].name, name))
            return texts[k].value;
    if (!str_eq(name, "instance-state-code"))
        return NULL;
    snprintf(scratch, size, "%d", instance_state_code(i->state));
    return scratch;
}

static bool filter_selects(const struct ec2_filter *f, const struct instance *i)
{
    char scratch[16];
    if (str_starts(f->name, "tag:")) {
        const char *value = tags_get(&i->tags, f->name + 4);
        return value && ec2_filter_matches(f, value);
    }
    if (str_eq(f->name, "tag-key"))
        return any_tag_matches(f, &i->tags);
    const char *text = filtered_text(i, f->name, scratch, sizeof(scratch));
    return text && ec2_filter_matches(f, text);
}

static int check_filters(struct ec2_call *c, const struct ec2_filters *fs)
{
    static const struct reservation no_reservation;
    struct market_pool no_pool = {0};
    const struct instance none = {.reservation = &no_reservation, .pool = &no_pool};
    char scratch[16];
    for (size_t k = 0; k < fs->n; k++) {
        const char *name = fs->list[k].name;
        if (!str_starts(name, "tag:") && !str_eq(name, "tag-key") &&
            !filtered_text(&none, name, scratch, sizeof(scratch)))
            return ec2_fail(c, "InvalidParameterValue", "The filter '%.100s' is invalid", name);
    }
    return 0;
}

/* InstanceId.1 ... : *ret_list has one instance per id (free it). -1 if one is malformed or
 * unknown. */
static int read_ids(struct ec2_call *c, struct instance ***ret_list, size_t *ret_n)
{
    struct instance **list = NULL;
    size_t n = 0;
    const char *id;
    while ((id = form_get(c->form, "InstanceId.%zu", n + 1))) {
        struct instance *i = region_find(c->region, id);
        int rc = 0;
        if (n == IDS_MAX)
            rc = ec2_fail(
                c, "InvalidParameterValue", "At most %d instance ids can be given.", IDS_MAX);
        else if (!str_starts(id, "i-") || strlen(id) < 10 || strlen(id) > 19)
            rc = ec2_fail(c, "InvalidInstanceID.Malformed", "Invalid id: \"%.60s\"", id);
        else if (!i || !is_remembered(c, i))
            rc = ec2_fail(
                c, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id);
        if (rc < 0) {
            free(list);
            return rc;
        }
        list = mem_resize(list, n + 1, sizeof(*list));
        list[n++] = i;
    }
    *ret_list = list;
    *ret_n = n;
    return 0;
}

struct selection {
    struct instance **ids;
    size_t n_ids;
    struct ec2_filters filters;
    struct ec2_page page;
};

static void selection_deinit(struct selection *s)
{
    free(s->ids);
    free(s->filters.list);
}

static int read_selection(struct ec2_call *c, struct selection *s)
{
    if (read_ids(c, &s->ids, &s->n_ids) < 0 || ec2_read_filters(c, &s->filters) < 0 ||
        ec2_read_page(c, PAGE_MIN, PAGE_MAX, &s->page) < 0 || check_filters(c, &s->filters) < 0)
        return -1;
    if (s->n_ids > 0 && s->page.is_paged)
        return ec2_fail(c, "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults");
    return 0;
}

static bool is_selected(
    const struct ec2_call *c, const struct selection *s, const struct instance *i)
{
    if (i->number <= s->page.after || !is_remembered(c, i))
        return false;
    bool is_named = s->n_ids == 0;
    for (size_t k = 0; !is_named && k < s->n_ids; k++)
        is_named = s->ids[k] == i;
    for (size_t k = 0; is_named && k < s->filters.n; k++)
        is_named = filter_selects(&s->filters.list[k], i);
    return is_named;
}

/* ---- The actions ---- */

static void open_reservation(struct buf *b, const struct reservation *v, const char *account)
{
    xmlw_open(b, "item");
    xmlw_leaf(b, "reservationId", v->id);
    xmlw_leaf(b, "ownerId", account);
    buf_adds(b, "<groupSet/><instancesSet>");
}

static void write_selected(struct ec2_call *c, const struct selection *s)
{
    const struct region *r = c->region;
    struct buf *b = &c->reply->body;
    const struct reservation *open = NULL;
    int64_t n = 0, last = 0;
    bool is_more = false;
    xmlw_open(b, "reservationSet");
    for (size_t k = 0; k < r->n_instances && !is_more; k++) {
        const struct instance *i = r->instances[k];
        if (!is_selected(c, s, i))
            continue;
        is_more = n == s->page.max;
        if (is_more)
            break;
        if (open && open != i->reservation)
            buf_adds(b, "</instancesSet></item>");
        if (open != i->reservation)
            open_reservation(b, i->reservation, r->o->account);
        open = i->reservation;
        ec2_instance_xml(b, i, r->o->account);
        last = i->number;
        n++;
    }
    if (open)
        buf_adds(b, "</instancesSet></item>");
    xmlw_close(b, "reservationSet");
    if (is_more)
        ec2_next_token(b, last);
}

int ec2_describe_instances(struct ec2_call *c)
{
    struct selection s = {0};
    int rc = read_selection(c, &s);
    if (rc == 0)
        rc = ec2_params_end(c);
    if (rc == 0)
        write_selected(c, &s);
    selection_deinit(&s);
    return rc;
}

static void status_xml(struct buf *b, const char *name, bool is_ok)
{
    xmlw_open(b, name);
    xmlw_leaf(b, "status", is_ok ? "ok" : "not-applicable");
    if (is_ok)
        buf_adds(
            b, "<details><item><name>reachability</name><status>passed</status></item></details>");
    xmlw_close(b, name);
}

static void write_statuses(struct ec2_call *c, const struct selection *s, bool is_all)
{
    struct buf *b = &c->reply->body;
    int64_t n = 0, last = 0;
    xmlw_open(b, "instanceStatusSet");
    for (size_t k = 0; k < c->region->n_instances; k++) {
        const struct instance *i = c->region->instances[k];
        if (!is_selected(c, s, i) || (!is_all && i->state != INSTANCE_RUNNING))
            continue;
        if (n++ == s->page.max)
            break;
        xmlw_open(b, "item");
        xmlw_leaf(b, "instanceId", i->id);
        xmlw_leaf(b, "availabilityZone", i->pool->zone);
        ec2_state_xml(b, "instanceState", i->state);
        status_xml(b, "systemStatus", i->state == INSTANCE_RUNNING);
        status_xml(b, "instanceStatus", i->state == INSTANCE_RUNNING);
        xmlw_close(b, "item");
        last = i->number;
    }
    xmlw_close(b, "instanceStatusSet");
    if (n > s->page.max)
        ec2_next_token(b, last);
}

int ec2_describe_instance_status(struct ec2_call *c)
{
    struct selection s = {0};
    bool is_all = false;
    int rc = ec2_boolean(c, "IncludeAllInstances", false, &is_all);
    if (rc == 0)
        rc = read_selection(c, &s);
    if (rc == 0)
        rc = ec2_params_end(c);
    if (rc == 0)
        write_statuses(c, &s, is_all);
    selection_deinit(&s);
    return rc;
}

static void terminate(struct ec2_call *c, struct instance **list, size_t n)
{
    struct buf *b = &c->reply->body;
    xmlw_open(b, "instancesSet");
    for (size_t k = 0; k < n; k++) {
        int previous = list[k]->state;
        region_terminate(c->region, list[k], c->now);
        xmlw_open(b, "item");
        xmlw_leaf(b, "instanceId", list[k]->id);
        ec2_state_xml(b, "currentState", list[k]->state);
        ec2_state_xml(b, "previousState", previous);
        xmlw_close(b, "item");
    }
    xmlw_close(b, "instancesSet");
}

int ec2_terminate_instances(struct ec2_call *c)
{
    struct instance **list = NULL;
    size_t n = 0;
    bool dummy;
    int rc = read_ids(c, &list, &n);
    if (rc == 0 && n == 0)
        rc = ec2_fail(c, "MissingParameter", "The request must contain the parameter InstanceId");
    if (rc == 0)
        rc = ec2_boolean(c, "SkipOsShutdown", false, &dummy);
    if (rc == 0)
        rc = ec2_boolean(c, "Force", false, &dummy);
    if (rc == 0)
        rc = ec2_params_end(c);
    if (rc == 0)
        terminate(c, list, n);
    free(list);
    return rc;
}

static int read_resources(struct ec2_call *c, struct instance **list, size_t *ret_n)
{
    const char *id;
    size_t n = 0;
    while ((id = form_get(c->form, "ResourceId.%zu", n + 1))) {
        struct instance *i = region_find(c->region, id);
        if (n == IDS_MAX)
            return ec2_fail(
                c, "InvalidParameterValue", "At most %d resource ids can be given.", IDS_MAX);
        if (!i || !is_remembered(c, i))
            return ec2_fail(c, "InvalidID", "The ID '%.60s' is not valid", id);
        list[n++] = i;
    }
    *ret_n = n;
    return n > 0 ? 0
                 : ec2_fail(c, "MissingParameter",
                       "The request must contain the parameter resourceIdSet");
}

static int read_tag_list(struct ec2_call *c, struct tags *tags)
{
    if (ec2_read_tags(c, "", tags) < 0)
        return -1;
    return tags->n > 0
               ? 0
               : ec2_fail(c, "MissingParameter", "The request must contain the parameter tagSet");
}

static int tag_all(struct ec2_call *c, struct instance **list, size_t n, const struct tags *tags)
{
    for (size_t k = 0; k < n; k++) {
        size_t added = 0;
        for (size_t t = 0; t < tags->n; t++)
            added += !tags_get(&list[k]->tags, tags->list[t].key);
        if (list[k]->tags.n + added > INSTANCE_TAGS_MAX)
            return ec2_fail(
                c, "TagLimitExceeded", "A resource may have at most %d tags.", INSTANCE_TAGS_MAX);
    }
    for (size_t k = 0; k < n; k++)
        tags_set_all(&list[k]->tags, tags);
    buf_adds(&c->reply->body, "<return>true</return>");
    return 0;
}

int ec2_create_tags(struct ec2_call *c)
{
    struct instance **list = mem_array(IDS_MAX, sizeof(*list));
    struct tags tags = {0};
    size_t n = 0;
    int rc = read_resources(c, list, &n);
    if (rc == 0)
        rc = read_tag_list(c, &tags);
    if (rc == 0)
        rc = ec2_params_end(c);
    if (rc == 0)
        rc = tag_all(c, list, n, &tags);
    tags_deinit(&tags);
    free(list);
    return rc;
}

static void write_console(struct ec2_call *c, const struct instance *i)
{
    struct buf *b = &c->reply->body;
    struct buf text = {0}, coded = {0};
    if (c->account->console)
        c->account->console(c->account->console_ctx, i, &text);
    if (text.len > CONSOLE_MAX)
        buf_remove_front(&text, text.len - CONSOLE_MAX);
    b64_encode(&coded, buf_str(&text), text.len);
    xmlw_leaf(b, "instanceId", i->id);
    ec2_iso(b, "timestamp", c->now);
    xmlw_leaf(b, "output", buf_str(&coded));
    buf_deinit(&text);
    buf_deinit(&coded);
}

int ec2_get_console_output(struct ec2_call *c)
{
    const char *id;
    bool dummy;
    if (ec2_required(c, "InstanceId", &id) < 0 || ec2_boolean(c, "Latest", false, &dummy) < 0 ||
        ec2_params_end(c) < 0)
        return -1;
    const struct instance *i = region_find(c->region, id);
    if (!i || !is_remembered(c, i))
        return ec2_fail(
            c, "InvalidInstanceID.NotFound", "The instance ID '%.60s' does not exist", id);
    write_console(c, i);
    return 0;
}
