/* SPDX-License-Identifier: Apache-2.0
 *
 * The EC2 Query API, version 2016-11-15, as a function: parameters in, status and XML out. No I/O,
 * no clock.
 */
#ifndef BELAY_EMULATOR_EC2_EC2_H
#define BELAY_EMULATOR_EC2_EC2_H

#include "emulator/form.h"
#include "emulator/region.h"

#define EC2_VERSION "2016-11-15"
#define EC2_CONTENT_TYPE "text/xml;charset=UTF-8"
#define EC2_REQUEST_ID_MAX 37

struct ec2_subnet {
    char id[CLOUD_NAME_MAX];
    char zone[CLOUD_NAME_MAX];
};

/* The account's resources. NULL-terminated lists; NULL: anything well-formed is accepted. */
struct ec2_account {
    const char *const *images;
    const char *const *profiles;
    const struct ec2_subnet *subnets;
    size_t n_subnets;
    /* a second disk of images, which outlives its instance; 0 = none */
    int64_t image_volume_gib;
    /* maximum entries per page, whatever MaxResults says; 0 = no limit */
    int64_t page;
    struct ec2_store *store; /* launch templates and fleets; may be NULL */
    /* Appends the console output of an instance so far to out. May be NULL. */
    void (*console)(void *ctx, const struct instance *i, struct buf *out);
    void *console_ctx;
};

/* State between calls, apart from the region. Zeroed is valid and empty. */
struct ec2_store {
    struct ec2_template *templates;
    size_t n_templates;
    struct ec2_fleet_record *fleets;
    size_t n_fleets;
};
void ec2_store_deinit(struct ec2_store *s);
/* Resources besides instances, for GET /state: the launch templates. A new value. */
json_t *ec2_store_state(const struct ec2_store *s);

struct ec2_reply {
    int status;
    char code[96], message[512]; /* of an error; the message may be cut */
    char request_id[EC2_REQUEST_ID_MAX];
    struct buf body; /* freed with buf_deinit */
};

/* One call in progress, passed to the actions. */
struct ec2_call {
    struct region *region;
    const struct ec2_account *account;
    struct form *form;
    const char *action;
    struct wall now;
    struct ec2_reply *reply;
};

/* The caller has authenticated the request. The region is advanced to now first. */
void ec2_api_call(struct region *r, const struct ec2_account *account, struct form *form,
    struct wall now, struct ec2_reply *ret_reply);

/* An error reply alone: with EC2's HTTP status for the code, and its message if text is NULL. */
void ec2_api_error(
    struct region *r, const char *code, const char *text, struct ec2_reply *ret_reply);

void ec2_make_request_id(struct region *r, char out[EC2_REQUEST_ID_MAX]);

/* ---- for the actions, in ec2_*.c ---- */

/* Turns the reply into an error. Returns -1, to allow `return ec2_fail(...)`. */
int ec2_fail(struct ec2_call *c, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* -1 with the error reply set: a required parameter is absent or empty; a number is out of range;
 * not a boolean. */
int ec2_required(struct ec2_call *c, const char *name, const char **ret_value);
int ec2_integer(struct ec2_call *c, const char *name, int64_t min, int64_t max, int64_t fallback,
    int64_t *ret_n);
int ec2_boolean(struct ec2_call *c, const char *name, bool fallback, bool *ret_yes);

/* Call when all parameters have been read: refuses unknown ones, and ends a dry run. */
int ec2_params_end(struct ec2_call *c);

/* A page. Entries are numbered from 1 in a stable order; the page starts after `after` and has at
 * most max entries. The next page's token is made from its last entry's number. */
struct ec2_page {
    int64_t after, max;
    bool is_paged; /* MaxResults was given */
};
int ec2_read_page(struct ec2_call *c, int64_t min, int64_t max, struct ec2_page *ret_page);
void ec2_next_token(struct buf *b, int64_t last);

/* Filters: Filter.N.Name, Filter.N.Value.M. */
#define EC2_FILTERS_MAX 50
#define EC2_VALUES_MAX 200
struct ec2_filter {
    const char *name;
    const char *values[EC2_VALUES_MAX];
    size_t n_values;
};
struct ec2_filters {
    struct ec2_filter *list; /* the caller frees it */
    size_t n;
};
int ec2_read_filters(struct ec2_call *c, struct ec2_filters *ret_filters);
/* Whether one of the filter's values matches; * and ? are wildcards, \ escapes. */
bool ec2_filter_matches(const struct ec2_filter *f, const char *value);

/* <name>2026-08-22T12:02:00.000Z</name> */
void ec2_iso(struct buf *b, const char *name, struct wall w);
void ec2_zone_id(const char *zone, char *out, size_t size); /* "us-east-1a" -> "use1-az1" */
/* <item>...</item> of an instancesSet, without the reservation around it. */
void ec2_instance_xml(struct buf *b, const struct instance *i, const char *account_id);
void ec2_state_xml(struct buf *b, const char *name, int state);
void ec2_tags_xml(struct buf *b, const struct tags *tags);
/* Sets the tags of the parameters PREFIXTag.1.Key, PREFIXTag.1.Value and so on. Returns 0, or -1
 * with an error reply. */
int ec2_read_tags(struct ec2_call *c, const char *prefix, struct tags *tags);

/* The actions: return 0, or -1 with an error reply. They write the content between <requestId/> and
 * the end. */
int ec2_run_instances(struct ec2_call *c);
/* The launch requested by RunInstances' parameters in c->form; the reply stays empty. */
int ec2_launch(struct ec2_call *c, struct reservation **ret_reservation);
int ec2_create_launch_template(struct ec2_call *c);
int ec2_describe_launch_templates(struct ec2_call *c);
int ec2_delete_launch_template(struct ec2_call *c);
int ec2_create_fleet(struct ec2_call *c);
int ec2_describe_instances(struct ec2_call *c);
int ec2_describe_instance_status(struct ec2_call *c);
int ec2_terminate_instances(struct ec2_call *c);
int ec2_describe_volumes(struct ec2_call *c);
/* RunInstances' disks; their tags are not set yet. */
int ec2_read_disks(struct ec2_call *c, struct launch_spec *s);
int ec2_describe_spot_price_history(struct ec2_call *c);
int ec2_get_spot_placement_scores(struct ec2_call *c);
int ec2_describe_spot_instance_requests(struct ec2_call *c);
int ec2_describe_availability_zones(struct ec2_call *c);
int ec2_create_tags(struct ec2_call *c);
int ec2_get_console_output(struct ec2_call *c);

#endif
