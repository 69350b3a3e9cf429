/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute Engine v1 without any I/O: requests as paths and JSON bodies, replies parsed from bytes.
 *
 * Refusals are classified by their code or reason, and by the HTTP status only without one. HTTP
 * 200 means little: a launch is an operation, which is over when it is DONE, and successful when it
 * is DONE without an error.
 */
#ifndef BELAY_CLOUD_GCP_GCE_H
#define BELAY_CLOUD_GCP_GCE_H

#include "base/buf.h"
#include "cloud/gcp/gcp.h"

#define GCE_REPLY_MAX (16 * 1024 * 1024)
#define GCE_PAGE_TOKEN_MAX 4096
#define GCE_OPERATION_NAME_MAX 128
#define GCE_UUID_MAX 37
#define GCE_ZONES_MAX 64

#define GCE_LABEL_CLUSTER "belay-cluster"
#define GCE_LABEL_INSTANCE "belay-instance"
#define GCE_ATTRIBUTE_NOTICE                                                                       \
    "belay-early-notice-seconds" /* in the instance's metadata, for the notice reader */

/* ---- requests ---- */

/* ERR_CONFIG: a setting with which no launch can succeed. */
int gce_check_machine(const struct gcp_machine *m, struct err *e);

/* Appends the body of instances.insert to out. ERR_CONFIG if a value cannot be sent: Google's
 * alphabets are narrower than ours. */
int gce_build_insert(
    const struct cloud_launch *l, const struct gcp_machine *m, struct buf *out, struct err *e);

/* A UUID, version 5, derived from a name: equal names give equal UUIDs. */
void gce_request_id(const char *name, char out[GCE_UUID_MAX]);

/* Paths below /compute/VERSION/projects/PROJECT, appended to out. */
void gce_path_insert(const char *zone, const char *request_id, struct buf *out);
void gce_path_operation(const char *zone, const char *name, struct buf *out);
void gce_path_instance(const char *zone, const char *name, struct buf *out);
/* of its first serial port, the newest output */
void gce_path_console(const char *zone, const char *name, struct buf *out);
void gce_path_delete(const char *zone, const char *name, const char *request_id, struct buf *out);
/* page "" = the first */
void gce_path_list(const char *cluster, const char *page, struct buf *out);
/* Disks; cluster NULL: of any cluster. */
void gce_path_disks(const char *cluster, const char *page, struct buf *out);
void gce_path_preempted(const char *zone, const char *page, struct buf *out);

/* Splits an id, ZONE/NAME. ERR_INVALID. */
int gce_split_id(
    const char *id, char zone[CLOUD_NAME_MAX], char name[CLOUD_NAME_MAX], struct err *e);

bool gce_is_zone_of(const char *zone, const char *region);

/* ---- replies with HTTP status 200 ---- */

struct gce_operation {
    char name[GCE_OPERATION_NAME_MAX];
    bool done;
    struct err failed; /* ERR_NONE if it succeeded, or is not over */
};

int gce_parse_operation(
    const char *body, size_t n, struct gce_operation *ret_operation, struct err *e);

/* Appends a serial port's output, cleaned. */
int gce_parse_console(const char *body, size_t n, struct buf *out, struct err *e);

int gce_parse_instance(
    const char *body, size_t n, struct cloud_instance *ret_instance, struct err *e);

/* Adds the instances of the region; page (GCE_PAGE_TOKEN_MAX + 1 bytes) receives the next page's
 * token, "" after the last. ERR_UNAVAILABLE: a zone of the region did not answer, which differs
 * from a zone without instances. */
int gce_parse_list(const char *body, size_t n, const char *region, struct cloud_instances *list,
    char *page, struct err *e);

/* Adds the unattached disks of the region. A disk in several zones has the region as its zone and
 * the type "regional-TYPE". Otherwise as gce_parse_list. */
int gce_parse_disks(const char *body, size_t n, const char *region, struct cloud_volumes *list,
    char *page, struct err *e);

/* "preempted" operations in one zone. An instance of the cluster (by its name, a token
 * belay-CLUSTER-...) that was not listed is added as gone and reclaimed: once it is deleted, only
 * the operation remains of it. */
int gce_parse_preempted(const char *body, size_t n, const char *cluster, const char *zone,
    struct cloud_instances *list, char *page, struct err *e);

/* ---- refusals: any other status ---- */

/* Fills e from the reply; its text is for people, with what to do if known. Returns e->kind. */
int gce_parse_error(int status, const char *body, size_t n, struct err *e);

/* The same for the code of an operation's error. */
int gce_set_error(int status, const char *code, const char *message, struct err *e);

#endif
