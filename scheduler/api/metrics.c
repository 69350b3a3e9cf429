/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /metrics. Counters start at belayd's start, unless their help says otherwise.
 */
#include "scheduler/api/api_private.h"

#include "scheduler/api/stream/stream.h"
#include "scheduler/logs/archiver.h"
#include "scheduler/metrics/cluster.h"
#include "scheduler/metrics/log_lag.h"
#include "scheduler/metrics/observed.h"
#include "scheduler/retention.h"

static void add_tick(struct exposition *x, const struct tick *t)
{
    struct tick_stats s;
    tick_get_stats(t, &s);
    exposition_one(
        x, METRIC_COUNTER, "belay_events", "Events applied to the model.", (double)s.events);
    exposition_one(
        x, METRIC_COUNTER, "belay_commits", "Transactions committed.", (double)s.commits);
    exposition_family(x, METRIC_HISTOGRAM, "belay_commit_seconds", "Durations of commits.");
    exposition_histogram(x, "", &s.commit_seconds);
    exposition_family(x, METRIC_HISTOGRAM, "belay_tick_seconds",
        "Time that decisions took before a commit, without the commit.");
    exposition_histogram(x, "", &s.tick_seconds);
    exposition_one(x, METRIC_GAUGE, "belay_inbox_max", "Most events that waited for one tick.",
        (double)s.inbox_max);
    exposition_one(x, METRIC_GAUGE, "belay_state_disk_full",
        "1 while the disk that holds the state is full.", tick_is_full(t));
}

static void add_provision(struct exposition *x, const struct provision *p)
{
    struct provision_stats s;
    provision_get_stats(p, &s);
    exposition_one(x, METRIC_COUNTER, "belay_launches", "Launch calls made.", (double)s.launches);
    exposition_one(x, METRIC_COUNTER, "belay_launch_refusals", "Launches refused for good.",
        (double)s.refusals);
    exposition_one(x, METRIC_COUNTER, "belay_strays_ended",
        "Instances ended that carried our tag and had no row.", (double)s.strays);
    exposition_one(x, METRIC_COUNTER, "belay_sweeps", "Listings of the providers' instances.",
        (double)s.sweeps);
    exposition_one(
        x, METRIC_COUNTER, "belay_list_errors", "Listings that failed.", (double)s.list_errors);
}

static void add_grants(struct exposition *x, const struct grants *g)
{
    struct grants_stats s;
    if (!g)
        return;
    grants_get_stats(g, &s);
    exposition_one(x, METRIC_GAUGE, "belay_store_credentials",
        "Attempts that have credentials of their own for the store.", (double)s.valid);
    exposition_one(x, METRIC_GAUGE, "belay_store_credentials_soonest_end_seconds",
        "Time until the first of these credentials expires; 0 = none.",
        (double)s.soonest_end_ms / 1000);
    exposition_one(x, METRIC_COUNTER, "belay_store_credentials_made",
        "Credentials of jobs that were created.", (double)s.made);
    exposition_one(x, METRIC_COUNTER, "belay_store_credentials_failures",
        "Times that credentials of a job could not be created.", (double)s.failures);
}

static void add_requests(struct exposition *x, const struct api *a)
{
    exposition_one(
        x, METRIC_COUNTER, "belay_api_requests", "Requests to the API.", (double)a->n_requests);
    exposition_one(x, METRIC_COUNTER, "belay_api_refused",
        "Requests refused for lack of credentials.", (double)a->n_refused);
    exposition_family(x, METRIC_COUNTER, "belay_api_rate_limited",
        "Requests refused because there were too many of them from one user, or sign-ins from one "
        "address.");
    exposition_sample(x, "of=\"user\"", (double)a->n_paced);
    exposition_sample(x, "of=\"sign-in\"", (double)a->n_logins_paced);
    exposition_family(x, METRIC_HISTOGRAM, "belay_api_request_seconds",
        "Time from a request to its answer, by route; long polls and sessions with their wait.");
    series_write(&a->request_seconds, x);
}

static void add_streams(struct exposition *x, const struct api *a)
{
    struct streams_stats s;
    char label[40];
    streams_get_stats(a->streams, &s);
    exposition_one(
        x, METRIC_GAUGE, "belay_streams", "Streams of events that are open.", (double)s.open);
    exposition_one(
        x, METRIC_COUNTER, "belay_streams_opened", "Streams that were opened.", (double)s.opened);
    exposition_one(x, METRIC_COUNTER, "belay_streams_resumed",
        "Streams that continued after the last event of their client.", (double)s.resumed);
    exposition_one(x, METRIC_COUNTER, "belay_streams_refused",
        "Streams refused at the limits for one user and for all.", (double)s.refused);
    exposition_one(x, METRIC_COUNTER, "belay_stream_events",
        "Events sent, counted for each stream.", (double)s.events);
    exposition_one(x, METRIC_COUNTER, "belay_stream_resets",
        "Times that streams of one kind were told to read everything again.", (double)s.resets);
    exposition_family(
        x, METRIC_COUNTER, "belay_streams_ended", "Streams that belayd ended, by reason.");
    for (size_t k = 0; k < STREAM_ENDS; k++) {
        snprintf(label, sizeof(label), "reason=\"%s\"", stream_end_names[k]);
        exposition_sample(x, label, (double)s.ends[k]);
    }
}

/* Sums over all listeners. */
static void add_http(struct exposition *x, const struct api *a)
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
    exposition_one(x, METRIC_GAUGE, "belay_http_stranger_connections",
        "Connections that have not shown a token or a node's certificate yet.",
        sum.connections[HTTP_STRANGER]);
    exposition_one(x, METRIC_GAUGE, "belay_http_user_connections", "Connections of users.",
        sum.connections[HTTP_USER]);
    exposition_one(x, METRIC_GAUGE, "belay_http_node_connections", "Connections of nodes.",
        sum.connections[HTTP_NODE]);
    exposition_one(
        x, METRIC_COUNTER, "belay_http_accepted", "Connections accepted.", (double)sum.accepted);
    exposition_one(x, METRIC_COUNTER, "belay_http_refused", "Connections refused at a limit.",
        (double)sum.refused);
    exposition_one(x, METRIC_COUNTER, "belay_http_gave_way",
        "Connections or bodies dropped to make space for a newer one.", (double)sum.gave_way);
    exposition_one(x, METRIC_COUNTER, "belay_http_too_slow",
        "Connections closed at a deadline for a handshake, a head, a body or a reply.",
        (double)sum.too_slow);
    exposition_one(x, METRIC_COUNTER, "belay_http_malformed", "Requests refused for their form.",
        (double)sum.malformed);
    exposition_one(x, METRIC_COUNTER, "belay_http_bodies_refused",
        "Bodies refused for their size or for lack of space.", (double)sum.bodies_refused);
    exposition_one(x, METRIC_COUNTER, "belay_http_replies_refused",
        "Large replies refused for lack of space: the client reads too slowly.",
        (double)sum.replies_refused);
}

static void add_of(
    struct exposition *x, const char *name, const char *help, const int64_t values[3])
{
    static const char *const of[] = {"database", "logs_on_disk", "logs_in_store"};
    exposition_family(x, METRIC_GAUGE, name, help);
    for (int i = 0; i < 3; i++) {
        struct metric_labels l = {0};
        metric_labels_add(&l, "of", of[i]);
        exposition_sample(x, l.text, (double)values[i]);
    }
}

static void add_retention(struct exposition *x, const struct api *a)
{
    const struct config_retention *c = &a->o.config->retention;
    struct retention_stats s;
    struct output_use u = {0};
    if (!a->o.retention || !a->o.archiver)
        return;
    retention_get_stats(a->o.retention, &s);
    archiver_use(a->o.archiver, &u);
    add_of(x, "belay_retention_bytes", "Bytes in use, of output since the first look.",
        (const int64_t[]){s.used_bytes, u.disk_bytes, u.store_bytes});
    add_of(x, "belay_retention_max_bytes", "Their limits; 0 = unlimited.",
        (const int64_t[]){c->database_bytes, c->disk_bytes, c->store_bytes});
    exposition_one(x, METRIC_COUNTER, "belay_retention_deleted_jobs",
        "Jobs that the retention deleted.", (double)s.jobs);
    exposition_one(x, METRIC_COUNTER, "belay_retention_deleted_jobs_by_size",
        "Jobs deleted before their age, because the database was too large.",
        (double)s.jobs_by_size);
}

static void add_logs(struct exposition *x, const struct logs *logs)
{
    exposition_one(x, METRIC_COUNTER, "belay_log_bytes", "Output of jobs stored, in bytes.",
        (double)logs->stats.bytes);
    exposition_one(x, METRIC_COUNTER, "belay_log_cuts", "Attempts whose output was cut at a limit.",
        (double)logs->stats.cuts);
    exposition_one(x, METRIC_GAUGE, "belay_log_disk_low",
        "1 while agents keep output because the disk that holds the state is almost full.",
        log_disk_is_low(logs->disk) ? 1 : 0);
}

static void add_belayd(struct exposition *x, const struct api *a)
{
    exposition_family(
        x, METRIC_GAUGE, "belay_build_info", "Always 1; the version of belayd is a label.");
    exposition_sample(x, "version=\"" BELAY_VERSION "\"", 1);
    exposition_one(x, METRIC_GAUGE, "belay_ca_end_timestamp_seconds",
        "When the cluster's certificate authority ends, and every certificate with it.",
        (double)(ca_ends_at(a->o.ca).ms / 1000));
}

void api_metrics(struct request *q)
{
    const struct api *a = q->api;
    const struct model *m = tick_model(a->o.tick);
    struct buf out = {0};
    struct exposition x = {.out = &out,
        .open_metrics = exposition_wants_open_metrics(http_request_header(q->x, "Accept"))};
    observed_write(a->o.observed, m, &x);
    log_lag_write(a->log_lag, m, clock_mono(a->o.timers->clock), &x);
    cluster_write(m, tick_now(a->o.tick).wall, &x);
    add_tick(&x, a->o.tick);
    add_provision(&x, a->o.provision);
    add_grants(&x, a->o.grants);
    add_retention(&x, a);
    add_logs(&x, a->o.logs);
    add_belayd(&x, a);
    add_requests(&x, a);
    add_streams(&x, a);
    add_http(&x, a);
    exposition_end(&x);
    http_reply_bytes(q->x, 200, exposition_content_type(&x), out.data, out.len);
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
