/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the gcp driver's operations; private to the driver. A call is a chain of stages. Each
 * is one request, repeated once with a new token if Google refuses its token.
 */
#ifndef BELAY_CLOUD_GCP_CALL_H
#define BELAY_CLOUD_GCP_CALL_H

#include "cloud/call.h"
#include "cloud/kept.h"
#include "cloud/gcp/credentials.h"
#include "cloud/gcp/gce.h"
#include "cloud/oauth.h"
#include "cloud/quotas.h"

struct gcp_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct gcp_machine machine;      /* its texts are in kept */
    char *endpoint_url, *quotas_url; /* of Compute Engine, of Cloud Quotas */
    struct gcp_credential_source *credentials;
    /* Zones in which this driver has had machines: preemptions are looked up there. */
    char zones[GCE_ZONES_MAX][CLOUD_NAME_MAX];
    size_t n_zones;
};

struct gcp_call;

/* One request of a call, and the handling of its reply. Each handler ends with exactly one of the
 * calls of call.h. */
struct stage {
    const char *method;
    void (*path)(struct gcp_call *c, struct buf *out);
    void (*on_good)(struct gcp_call *c, const char *body, size_t n);
    void (*on_refused)(struct gcp_call *c, const struct err *e);
    bool of_cloud_quotas; /* a request to Cloud Quotas, not to Compute Engine */
};

struct gcp_call {
    struct cloud_call base;
    struct gcp_driver *d;
    const struct stage *stage;
    struct oauth_wait wait;
    bool token_renewed;
    /* launch; zone, token and operation also for a deletion */
    char token[CLOUD_TOKEN_MAX], zone[CLOUD_NAME_MAX], type[CLOUD_NAME_MAX],
        cluster[CLOUD_NAME_MAX];
    enum cloud_market market;
    struct buf body;
    char request_id[GCE_UUID_MAX];
    struct gce_operation operation;
    int64_t poll_ms, poll_cap_ms;
    struct mono poll_end;
    bool is_taken;  /* an operation exists */
    bool is_replay; /* the operation was over when the insert was answered */
    int replays;
    /* list */
    char page[GCE_PAGE_TOKEN_MAX + 1];
    int pages;
    size_t next_zone;
    struct cloud_quota_values region_quotas, project_quotas; /* quotas */
};

/* ops for cloud_call_*, common to every operation with stages. */
void gcp_call_step(struct cloud_call *base);
void gcp_call_on_reply(struct cloud_call *base, const struct http_reply *reply);
void gcp_call_deinit(struct cloud_call *base);

/* A malformed region is refused later, in the completion. */
struct gcp_call *gcp_call_new(
    struct cloud_driver *d, const char *region, const struct stage *first);

/* Each reply calls exactly one of these; the call may be freed afterwards. */

void gcp_call_finish(struct gcp_call *c, const struct err *e); /* e is NULL on success */
void gcp_call_continue(struct gcp_call *c, const struct stage *next);
/* The launch was not refused: it continues, or is over by now, and this call cannot tell. */
void gcp_call_fail_unknown(struct gcp_call *c, const struct err *e);
/* on_refused of a stage: the refusal ends the call */
void gcp_call_on_refused(struct gcp_call *c, const struct err *e);
/* Sends `poll` later, with growing pauses; ERR_TIMEOUT when the total of gcp_call_start_polling is
 * over. */
void gcp_call_wait(struct gcp_call *c, const struct stage *poll);

void gcp_call_start_polling(struct gcp_call *c, int64_t first_ms, int64_t cap_ms, int64_t total_ms);
void gcp_path_operation(
    struct gcp_call *c, struct buf *out); /* path of a stage: the operation begun last */

/* Machines may exist in this zone: listings look there for preemptions. */
void gcp_remember_zone(struct gcp_driver *d, const char *zone);

#endif
