/* SPDX-License-Identifier: Apache-2.0
 *
 * The EC2 Query API, version 2016-11-15, without any I/O: requests as form bodies, replies parsed
 * from bytes.
 *
 * A reply must be the XML document of its action. HTML, truncated XML, another root, a malformed
 * element or a document type declaration is ERR_INVALID, and the error says which. Refusals are
 * classified by their Code, never by the HTTP status ("no capacity" and "throttled" arrive as 5xx).
 */
#ifndef BELAY_CLOUD_AWS_EC2_H
#define BELAY_CLOUD_AWS_EC2_H

#include "base/buf.h"
#include "cloud/aws/aws.h"

#define EC2_REPLY_MAX (16 * 1024 * 1024)
#define EC2_PAGE_TOKEN_MAX 4096
#define EC2_TERMINATE_MAX 1000
#define EC2_TYPES_MAX 100
#define EC2_ERROR_CODE_MAX 96

#define EC2_TEMPLATE_NAME_MAX 48
#define EC2_TEMPLATE_PREFIX "belay-"
#define EC2_FLEET_ERRORS_MAX 64
#define EC2_NAMES_MAX 20
#define EC2_ZONES_MAX 64
#define EC2_SCORE_MAX 10
/* With fewer types than this, the score is low in any market. */
#define EC2_SCORED_TYPES_MIN 3

#define EC2_TAG_CLUSTER "belay:cluster"
#define EC2_TAG_INSTANCE "belay:instance"

/* ---- requests: append the form body to out; ERR_CONFIG if a value cannot be sent ---- */

int ec2_build_run_instances(
    const struct cloud_launch *l, const struct aws_machine *m, struct buf *out, struct err *e);
/* The launch template with all of a machine except its type and target. name receives the
 * template's name, derived from its content. */
int ec2_build_create_template(const struct cloud_launch *l, const struct aws_machine *m,
    char name[EC2_TEMPLATE_NAME_MAX], struct buf *out, struct err *e);
/* One instance at one of the targets (l's alternatives are ignored). With a subnet, all targets are
 * in it. */
int ec2_build_create_fleet(const struct cloud_launch *l, const struct aws_machine *m,
    const char *template, const struct cloud_target *targets, size_t n_targets, struct buf *out,
    struct err *e);
void ec2_build_delete_template(const char *name, struct buf *out);
void ec2_build_describe_templates(const char *cluster, struct buf *out);
/* cluster NULL: of any cluster, and of none. */
void ec2_build_describe_instances(const char *cluster, struct buf *out);
/* The unattached volumes; cluster NULL: of any cluster. */
void ec2_build_describe_volumes(const char *cluster, struct buf *out);
void ec2_build_get_console_output(const char *id, struct buf *out);
int ec2_build_terminate_instances(
    const char *const *ids, size_t n_ids, struct buf *out, struct err *e);
/* The prices in force at `at`. */
int ec2_build_spot_prices(
    const char *const *types, size_t n_types, struct wall at, struct buf *out, struct err *e);
/* How likely a spot machine of any of these types can be launched now, by zone. */
int ec2_build_placement_scores(
    const char *const *types, size_t n_types, const char *region, struct buf *out, struct err *e);
/* Requests the page named by a reply's token: appended to the body of the first page. */
void ec2_add_page(const char *page, struct buf *out);

/* ---- replies with HTTP status 200 ---- */

/* The one instance. Tags missing from the reply stay "". */
int ec2_parse_run_instances(
    const char *body, size_t n, struct cloud_instance *ret_instance, struct err *e);

/* One EC2 capacity pool that gave no instance. */
struct ec2_fleet_error {
    char zone[CLOUD_NAME_MAX], type[CLOUD_NAME_MAX]; /* zone "" = any */
    /* NO_CAPACITY, QUOTA, DENIED or CONFIG: final, the same token gives the same answer */
    struct err e;
};

/* The outcome of a fleet: there may be errors next to an instance. */
struct ec2_fleet {
    /* id "" = none. Without token, cluster and market; zone "" if the reply has none */
    struct cloud_instance instance;
    /* the first of them; an error without a type applies to all types */
    struct ec2_fleet_error errors[EC2_FLEET_ERRORS_MAX];
    size_t n_errors;
};
/* *ret_fleet is unchanged on failure. */
int ec2_parse_create_fleet(const char *body, size_t n, struct ec2_fleet *ret_fleet, struct err *e);

struct ec2_names {
    char list[EC2_NAMES_MAX][CLOUD_NAME_MAX * 2];
    size_t n;
};
/* Our launch templates created before this time; the first of them, if there are many. */
int ec2_parse_launch_templates(
    const char *body, size_t n, struct wall before, struct ec2_names *ret_names, struct err *e);

/* A reply of which only the root is checked. */
int ec2_parse_done(const char *body, size_t n, const char *root, struct err *e);

/* page (EC2_PAGE_TOKEN_MAX + 1 bytes) receives the next page's token, "" after the last. */
int ec2_parse_describe_instances(
    const char *body, size_t n, struct cloud_instances *list, char *page, struct err *e);

/* The same for volumes. Attached volumes, and those being created or deleted, are left out. */
int ec2_parse_describe_volumes(
    const char *body, size_t n, struct cloud_volumes *list, char *page, struct err *e);

/* Appends the console's output, cleaned; nothing if there is none. */
int ec2_parse_get_console_output(const char *body, size_t n, struct buf *out, struct err *e);

/* Each id must be among those that the reply reports as shutting down. */
int ec2_parse_terminate_instances(
    const char *body, size_t n, const char *const *ids, size_t n_ids, struct err *e);

/* Names of zones: an account's own names, and the ids common to all accounts. */
struct ec2_zones {
    struct {
        char name[CLOUD_NAME_MAX], id[CLOUD_NAME_MAX];
    } list[EC2_ZONES_MAX];
    size_t n;
};

/* zones (may be NULL) receives both names of each zone in the reply. */
int ec2_parse_spot_prices(const char *body, size_t n, struct cloud_prices *list,
    struct ec2_zones *zones, char *page, struct err *e);

struct ec2_scores {
    struct {
        char zone_id[CLOUD_NAME_MAX];
        int score; /* 1 .. EC2_SCORE_MAX */
    } list[EC2_ZONES_MAX];
    size_t n;
};
/* Adds to scores. EC2 returns the best ten zones. */
int ec2_parse_placement_scores(
    const char *body, size_t n, struct ec2_scores *scores, char *page, struct err *e);

/* ---- refusals: any other status ---- */

/* What the driver can do about a refusal itself, once, before passing it on. */
enum ec2_remedy { EC2_REMEDY_NONE, EC2_REMEDY_CLOCK, EC2_REMEDY_CREDENTIALS };

/* Fills e from the reply: the kind from the Code, the text for people ("EC2 refused: Code:
 * message", with what to do if known). A body that is not an EC2 error is judged by the status.
 * Returns e->kind. */
/* The same for a code and a message within a reply. */
int ec2_refusal(const char *code, const char *message, struct err *e);
int ec2_parse_error(
    int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e);

#endif
