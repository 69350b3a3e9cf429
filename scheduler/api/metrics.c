/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /metrics: Prometheus text exposition, format 0.0.4. Counters start at belayd's start.
 */
#include "scheduler/api/api_private.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"

#include "scheduler/logs/archiver.h"
#include "scheduler/retention.h"

static void metric(
    struct buf *out, const char *name, const char *type, const char *help, double value)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

/* Nodes that belay drains now, and drains by their causes. */
static void add_drains(struct buf *out, const struct model *m)
{
    static const char *const causes[DRAIN_CAUSES] = {"operator", "fault", "failing-jobs"};
    int64_t drained = 0;
    LIST_FOREACH (model_nodes(m), l) {
        const struct node_row *r = &LIST_ENTRY(l, struct node, in_all)->row;
        drained += r->drain && r->drain_text[0];
    }
    metric(
        out, "belay_nodes_drained", "gauge", "Nodes that belay drains by itself.", (double)drained);
    buf_adds(out, "# HELP belay_node_drains_total Drains of nodes, by cause.\n"
                  "# TYPE belay_node_drains_total counter\n");
    for (int c = 0; c < DRAIN_CAUSES; c++)
        buf_printf(out, "belay_node_drains_total{cause=\"%s\"} %lld\n", causes[c],
            (long long)nodes_drains(m, (enum drain_cause)c));
}

static void add_model(struct buf *out, const struct model *m)
{
    struct model_counts c;
    model_counts(m, &c);
    metric(out, "belay_jobs_pending", "gauge", "Jobs that wait for a place.", (double)c.pending);
    metric(out, "belay_jobs_running", "gauge", "Jobs with a live attempt.", (double)c.running);
    metric(out, "belay_nodes_up", "gauge", "Nodes that report and take work.", (double)c.nodes_up);
    metric(out, "belay_nodes_lost", "gauge", "Nodes whose lease is over.", (double)c.nodes_lost);
    metric(out, "belay_instances", "gauge", "Instances that are intended, alive or ending.",
        (double)c.instances);
}

static int failed_boots(const struct pool_row *r)
{
    return r->boots.failed;
}

static int boots_fail(const struct pool_row *r)
{
    return r->boots.wait_ms > 0;
}

/* A gauge of each elastic pool. */
static void add_pool_gauge(struct buf *out, const struct model *m, const char *name,
    const char *help, int (*value)(const struct pool_row *r))
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    LIST_FOREACH (model_pools(m), l) {
        const struct pool_row *r = &LIST_ENTRY(l, struct pool, in_all)->row;
        if (r->elastic)
            buf_printf(out, "%s{pool=\"%s\"} %d\n", name, r->name, value(r));
    }
}

static void add_pools(struct buf *out, const struct model *m)
{
    add_pool_gauge(out, m, "belay_pool_failed_boots",
        "Machines of a pool, in a row, that were launched and never joined, or whose disks were "
        "full before their first job.",
        failed_boots);
    add_pool_gauge(out, m, "belay_pool_boots_fail",
        "1 while a pool launches one machine at a time, because its machines do not join, or join "
        "with full disks.",
        boots_fail);
}

static void add_tick(struct buf *out, const struct tick *t)
{
    struct tick_stats s;
    tick_get_stats(t, &s);
    metric(out, "belay_events_total", "counter", "Events applied to the model.", (double)s.events);
    metric(out, "belay_commits_total", "counter", "Transactions committed.", (double)s.commits);
    metric(out, "belay_commit_seconds_total", "counter", "Time spent in commits.",
        (double)s.commit_ms_sum / 1000);
    metric(out, "belay_commit_seconds_max", "gauge", "Longest commit.",
        (double)s.commit_ms_max / 1000);
    metric(out, "belay_inbox_max", "gauge", "Most events that waited for one tick.",
        (double)s.inbox_max);
    metric(out, "belay_state_disk_full", "gauge", "1 while the disk that holds the state is full.",
        tick_is_full(t));
}

static void add_provision(struct buf *out, const struct provision *p)
{
    struct provision_stats s;
    provision_get_stats(p, &s);
    metric(out, "belay_launches_total", "counter", "Launch calls made.", (double)s.launches);
    metric(out, "belay_launch_refusals_total", "counter", "Launches refused for good.",
        (double)s.refusals);
    metric(out, "belay_strays_ended_total", "counter",
        "Instances ended that carried our tag and had no row.", (double)s.strays);
    metric(out, "belay_sweeps_total", "counter", "Listings of the providers' instances.",
        (double)s.sweeps);
    metric(
        out, "belay_list_errors_total", "counter", "Listings that failed.", (double)s.list_errors);
}

static void add_grants(struct buf *out, const struct grants *g)
{
    struct grants_stats s;
    if (!g)
        return;
    grants_get_stats(g, &s);
    metric(out, "belay_store_credentials", "gauge",
        "Attempts that have credentials of their own for the store.", (double)s.valid);
    metric(out, "belay_store_credentials_soonest_end_seconds", "gauge",
        "Time until the first of these credentials expires; 0 = none.",
        (double)s.soonest_end_ms / 1000);
    metric(out, "belay_store_credentials_made_total", "counter",
        "Credentials of jobs that were created.", (double)s.made);
    metric(out, "belay_store_credentials_failures_total", "counter",
        "Times that credentials of a job could not be created.", (double)s.failures);
}

static void add_requests(struct buf *out, const struct api *a)
{
    metric(
        out, "belay_api_requests_total", "counter", "Requests to the API.", (double)a->n_requests);
    metric(out, "belay_api_refused_total", "counter", "Requests refused for lack of credentials.",
        (double)a->n_refused);
    buf_printf(out,
        "# HELP belay_api_rate_limited_total Requests refused because there were too many of them "
        "from one user, or sign-ins from one address.\n"
        "# TYPE belay_api_rate_limited_total counter\n"
        "belay_api_rate_limited_total{of=\"user\"} %lld\n"
        "belay_api_rate_limited_total{of=\"sign-in\"} %lld\n",
        (long long)a->n_paced, (long long)a->n_logins_paced);
}

/* Sums over all listeners. */
static void add_http(struct buf *out, const struct api *a)
{
    struct http_server_stats sum = {0}, s;
    for (size_t i = 0; i < API_LISTENERS_MAX && a->listeners[i]; i++) {
        http_server_get_stats(a->listeners[i], &s);
        for (size_t c = 0; c < HTTP_CLASSES; c++)
            sum.connections[c] += s.connections[c];
        sum.accepted += s.accepted;
        sum.refused += s.refused;
        sum.gave_way += s.gave_way;
        sum.too_slow += s.too_slow;
        sum.malformed += s.malformed;
        sum.bodies_refused += s.bodies_refused;
        sum.replies_refused += s.replies_refused;
    }
    metric(out, "belay_http_stranger_connections", "gauge",
        "Connections that have not shown a token or a node's certificate yet.",
        sum.connections[HTTP_STRANGER]);
    metric(out, "belay_http_user_connections", "gauge", "Connections of users.",
        sum.connections[HTTP_USER]);
    metric(out, "belay_http_node_connections", "gauge", "Connections of nodes.",
        sum.connections[HTTP_NODE]);
    metric(
        out, "belay_http_accepted_total", "counter", "Connections accepted.", (double)sum.accepted);
    metric(out, "belay_http_refused_total", "counter", "Connections refused at a limit.",
        (double)sum.refused);
    metric(out, "belay_http_gave_way_total", "counter",
        "Connections or bodies dropped to make space for a newer one.", (double)sum.gave_way);
    metric(out, "belay_http_too_slow_total", "counter",
        "Connections closed at a deadline for a handshake, a head, a body or a reply.",
        (double)sum.too_slow);
    metric(out, "belay_http_malformed_total", "counter", "Requests refused for their form.",
        (double)sum.malformed);
    metric(out, "belay_http_bodies_refused_total", "counter",
        "Bodies refused for their size or for lack of space.", (double)sum.bodies_refused);
    metric(out, "belay_http_replies_refused_total", "counter",
        "Large replies refused for lack of space: the client reads too slowly.",
        (double)sum.replies_refused);
}

static void add_of(struct buf *out, const char *name, const char *help, const int64_t values[3])
{
    static const char *const of[] = {"database", "logs_on_disk", "logs_in_store"};
    buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    for (int i = 0; i < 3; i++)
        buf_printf(out, "%s{of=\"%s\"} %lld\n", name, of[i], (long long)values[i]);
}

static void add_retention(struct buf *out, const struct api *a)
{
    const struct config_retention *c = &a->o.config->retention;
    struct retention_stats s;
    struct output_use u = {0};
    if (!a->o.retention || !a->o.archiver)
        return;
    retention_get_stats(a->o.retention, &s);
    archiver_use(a->o.archiver, &u);
    add_of(out, "belay_retention_bytes", "Bytes in use, of output since the first look.",
        (const int64_t[]){s.used_bytes, u.disk_bytes, u.store_bytes});
    add_of(out, "belay_retention_max_bytes", "Their limits; 0 = unlimited.",
        (const int64_t[]){c->database_bytes, c->disk_bytes, c->store_bytes});
    metric(out, "belay_retention_deleted_jobs_total", "counter", "Jobs that the retention deleted.",
        (double)s.jobs);
    metric(out, "belay_retention_deleted_jobs_by_size_total", "counter",
        "Jobs deleted before their age, because the database was too large.",
        (double)s.jobs_by_size);
}

void api_metrics(struct request *q)
{
    struct buf out = {0};
    add_model(&out, tick_model(q->api->o.tick));
    add_drains(&out, tick_model(q->api->o.tick));
    add_pools(&out, tick_model(q->api->o.tick));
    add_tick(&out, q->api->o.tick);
    add_provision(&out, q->api->o.provision);
    add_grants(&out, q->api->o.grants);
    add_retention(&out, q->api);
    metric(&out, "belay_log_bytes_total", "counter", "Output of jobs stored, in bytes.",
        (double)q->api->o.logs->stats.bytes);
    metric(&out, "belay_log_cuts_total", "counter", "Attempts whose output was cut at a limit.",
        (double)q->api->o.logs->stats.cuts);
    metric(&out, "belay_log_disk_low", "gauge",
        "1 while agents keep output because the disk that holds the state is almost full.",
        log_disk_is_low(q->api->o.logs->disk) ? 1 : 0);
    metric(&out, "belay_ca_end_timestamp_seconds", "gauge",
        "When the cluster's certificate authority ends, and every certificate with it.",
        (double)(ca_ends_at(q->api->o.ca).ms / 1000));
    add_requests(&out, q->api);
    add_http(&out, q->api);
    http_reply_bytes(q->x, 200, "text/plain; version=0.0.4", out.data, out.len);
    buf_deinit(&out);
}

void api_health(struct request *q)
{
    if (q->api->shutting_down)
        http_reply_text(q->x, 503, "text/plain", "shutting down\n");
    else if (tick_is_full(q->api->o.tick))
        http_reply_text(q->x, 503, "text/plain", "the disk that holds the state is full\n");
    else
        http_reply_text(q->x, 200, "text/plain", "ok\n");
}
