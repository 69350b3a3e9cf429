/* SPDX-License-Identifier: Apache-2.0
 *
 * EC2's replies. The first byte selects the parser: '0' RunInstances, '1' DescribeInstances, '2'
 * TerminateInstances, '3' spot prices, '4' CreateFleet, '5' launch templates, '6' placement scores,
 * '7' volumes, '8' consoles, anything else a refusal.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "cloud/console.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_instance(const struct cloud_instance *i)
{
    assert(i->id[0] && strlen(i->id) < sizeof(i->id));
    assert(strlen(i->token) < sizeof(i->token) && strlen(i->cluster) < sizeof(i->cluster));
    assert(strlen(i->reason) < sizeof(i->reason) && str_is_utf8(i->reason, strlen(i->reason)));
    assert(!wall_is_set(i->ended_at) || i->state == CLOUD_STOPPING || i->state == CLOUD_GONE);
    assert(!i->reclaimed || i->state == CLOUD_STOPPING || i->state == CLOUD_GONE);
}

static int read_launch(const char *body, size_t n, struct err *e)
{
    struct cloud_instance i;
    int rc = ec2_parse_run_instances(body, n, &i, e);
    if (rc == 0)
        check_instance(&i);
    return rc;
}

static int read_list(const char *body, size_t n, struct err *e)
{
    struct cloud_instances l = {0};
    char page[EC2_PAGE_TOKEN_MAX + 1];
    int rc = ec2_parse_describe_instances(body, n, &l, page, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        check_instance(&l.list[i]);
    cloud_instances_deinit(&l);
    return rc;
}

static int read_terminate(const char *body, size_t n, struct err *e)
{
    static const char *const ids[] = {"i-0a01", "i-0a02"};
    return ec2_parse_terminate_instances(body, n, ids, 2, e);
}

static int read_prices(const char *body, size_t n, struct err *e)
{
    struct cloud_prices l = {0};
    struct ec2_zones *zones = mem_alloc(sizeof(*zones));
    char page[EC2_PAGE_TOKEN_MAX + 1];
    int rc = ec2_parse_spot_prices(body, n, &l, zones, page, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        assert(l.list[i].zone[0] && l.list[i].type[0] && l.list[i].uusd_h >= 0);
    assert(zones->n <= EC2_ZONES_MAX);
    for (size_t i = 0; i < zones->n; i++)
        assert(zones->list[i].name[0] && zones->list[i].id[0]);
    free(zones);
    cloud_prices_deinit(&l);
    return rc;
}

static int read_fleet(const char *body, size_t n, struct err *e)
{
    struct ec2_fleet *f = mem_alloc(sizeof(*f));
    int rc = ec2_parse_create_fleet(body, n, f, e);
    assert(rc == 0 || (f->n_errors == 0 && !f->instance.id[0]));
    assert(f->n_errors <= EC2_FLEET_ERRORS_MAX);
    for (size_t i = 0; i < f->n_errors; i++) {
        enum err_kind k = f->errors[i].e.kind;
        assert(k == ERR_NO_CAPACITY || k == ERR_QUOTA || k == ERR_DENIED || k == ERR_CONFIG);
    }
    if (f->instance.id[0])
        check_instance(&f->instance);
    free(f);
    return rc;
}

static int read_templates(const char *body, size_t n, struct err *e)
{
    struct ec2_names names = {0};
    int rc = ec2_parse_launch_templates(body, n, (struct wall){1787400000000}, &names, e);
    for (size_t i = 0; i < names.n; i++)
        assert(str_starts(names.list[i], EC2_TEMPLATE_PREFIX));
    return rc;
}

static int read_scores(const char *body, size_t n, struct err *e)
{
    struct ec2_scores *s = mem_alloc(sizeof(*s));
    char page[EC2_PAGE_TOKEN_MAX + 1];
    int rc = ec2_parse_placement_scores(body, n, s, page, e);
    assert(s->n <= EC2_ZONES_MAX);
    for (size_t i = 0; i < s->n; i++)
        assert(s->list[i].zone_id[0] && s->list[i].score >= 1 && s->list[i].score <= EC2_SCORE_MAX);
    free(s);
    return rc;
}

static int read_volumes(const char *body, size_t n, struct err *e)
{
    struct cloud_volumes l = {0};
    char page[EC2_PAGE_TOKEN_MAX + 1];
    int rc = ec2_parse_describe_volumes(body, n, &l, page, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++) {
        const struct cloud_volume *v = &l.list[i];
        assert(v->id[0] && v->gib >= 0 && v->gib <= CLOUD_VOLUME_GIB_MAX);
        assert(strlen(v->name) < sizeof(v->name) && str_is_utf8(v->name, strlen(v->name)));
    }
    cloud_volumes_deinit(&l);
    return rc;
}

static int read_console(const char *body, size_t n, struct err *e)
{
    struct buf out = {0};
    int rc = ec2_parse_get_console_output(body, n, &out, e);
    assert(out.len <= CLOUD_CONSOLE_MAX && (out.len == 0 || out.data[out.len - 1] == '\n'));
    for (size_t i = 0; i < out.len; i++)
        assert(out.data[i] == '\n' || (out.data[i] >= ' ' && out.data[i] < 0x7f));
    buf_deinit(&out);
    return rc;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    enum ec2_remedy remedy;
    int kind = ec2_parse_error(400 + (int)(n % 200), body, n, &remedy, e);
    assert(kind != ERR_NONE && kind == (int)e->kind);
    return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {read_launch, read_list,
        read_terminate, read_prices, read_fleet, read_templates, read_scores, read_volumes,
        read_console, read_refusal};
    if (size == 0)
        return 0;
    size_t which = data[0] >= '0' && data[0] < '9' ? (size_t)(data[0] - '0') : 9;
    struct err e = {0};
    int rc = readers[which]((const char *)data + 1, size - 1, &e);
    assert(rc == 0 || (rc == (int)e.kind && e.text[0] && strlen(e.text) < ERR_TEXT_MAX));
    return 0;
}
