/* SPDX-License-Identifier: Apache-2.0
 *
 * Demands of jobs besides cpus, GPUs and memory: node features, named node resources, licences of
 * the cluster, exclusive nodes, and nodes by name. Most jobs have none of them, and many jobs have
 * the same. The text is therefore stored once, kept in the model once, and jobs refer to it by
 * number. Jobs that are otherwise equal are of one shape exactly if these numbers are equal.
 *
 *     gpu=a100 gpu-memory=40960 constraint=avx512&(ib|roce) resources=lego:2 licences=matlab:1
 *     exclusive=yes nodes=n[1-3] exclude=n2 input=aws/us-east-1:150323855360
 *
 * on one line, in this order, each at most once; demands that the job does not have are omitted.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_H

#include "job/counts.h"
#include "job/feature.h"
#include "job/hosts.h"
#include "scheduler/core/model/rows.h"
#include "scheduler/core/supply/egress.h"

#define CONSTRAINTS_GPU_MIB_MAX (1LL << 24)
#define INPUT_BYTES_MAX (1LL << 60)
#define INPUT_PROVIDER_MAX 16
#define INPUT_LOCATION_MAX (INPUT_PROVIDER_MAX + CORE_NAME_MAX)

/* Data that a job reads at its start and where it is: in a region of a provider, or ("") at the
 * checkpoint store. */
struct input {
    char provider[INPUT_PROVIDER_MAX], region[CORE_NAME_MAX];
    int64_t bytes;        /* 0: nothing that is known */
    struct egress egress; /* that provider's prices; in a model, else zeroed */
};

struct constraints {
    int64_t id;          /* in a model; else CONSTRAINTS_NONE */
    int64_t n_jobs;      /* in a model: live jobs that have it */
    struct gpu_kind gpu; /* required model of its GPUs */
    struct constraint constraint;
    struct counts resources; /* per node */
    struct counts licences;  /* per job, from its placement to its end */
    /* Whole nodes: no other job runs on them, and the job has all cpus, GPUs and memory. Its need
     * is the minimum size. */
    bool exclusive;
    /* Only on these nodes (job/hosts.h), which excludes machines still to be launched; "" = any. */
    char nodes[HOSTS_TEXT_MAX];
    char exclude[HOSTS_TEXT_MAX]; /* not on these nodes */
    struct input input;
};

/* "aws/us-east-1". False, with nothing set, if the text is not of this form. Whether the provider
 * exists is not checked: the core knows none. */
bool input_split_location(
    const char *text, char ret_provider[INPUT_PROVIDER_MAX], char ret_region[CORE_NAME_MAX]);
/* The same, or "store": then both are "". */
bool input_parse_location(const char *text, struct input *ret_input);
void input_format_location(const struct input *in, char out[INPUT_LOCATION_MAX]);

/* ERR_INVALID names the faulty part. "" has no demands. */
int constraints_parse(const char *text, struct constraints *ret_constraints, struct err *e);
bool constraints_name_nodes(const struct constraints *x); /* x may be NULL */
/* "" for no demands */
void constraints_format(const struct constraints *x, char out[CONSTRAINTS_TEXT_MAX]);

#endif
