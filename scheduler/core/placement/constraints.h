/* SPDX-License-Identifier: Apache-2.0
 *
 * What jobs may ask for beside cpus, GPUs and memory: features of their nodes, resources that nodes
 * have by name, licences of the cluster, nodes for themselves, and nodes by their names. Most ask
 * for none of it; those that do mostly ask for the same as many others. So a job has the number of
 * a text, which is stored once and kept in the model once, and two jobs of which all else is equal
 * are of one shape exactly if these numbers are.
 *
 *     gpu=a100 gpu-memory=40960 constraint=avx512&(ib|roce) resources=lego:2 licences=matlab:1
 *     exclusive=yes nodes=n[1-3] exclude=n2 input=aws/us-east-1:150323855360
 *
 * on one line, in this order, each at most once; those that the job does not ask for are left out.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_H

#include "job/counts.h"
#include "job/feature.h"
#include "job/hosts.h"
#include "scheduler/core/model/types.h"
#include "scheduler/core/supply/egress.h"

#define CONSTRAINTS_GPU_MIB_MAX (1LL << 24)
#define INPUT_BYTES_MAX (1LL << 60)
#define INPUT_PROVIDER_MAX 16
#define INPUT_PLACE_MAX (INPUT_PROVIDER_MAX + CORE_NAME_MAX)

/* What it reads when it starts, and where that lies: in a region of a provider, or ("") where the
 * checkpoint store is. */
struct input {
    char provider[INPUT_PROVIDER_MAX], region[CORE_NAME_MAX];
    int64_t bytes;        /* 0: nothing that is known */
    struct egress egress; /* that provider's prices; in a model, else zeroed */
};

struct constraints {
    int64_t id;          /* in a model; else CONSTRAINTS_NONE */
    int64_t n_jobs;      /* in a model: that have it, and live */
    struct gpu_kind gpu; /* of all of its GPUs, of which it has some */
    struct constraint constraint;
    struct counts resources; /* of each of its nodes */
    struct counts licences;  /* of all of the job, from its placement to its end */
    /* nobody else is on its nodes, of which it has all cpus, GPUs and memory; its need is the least
     * that they have */
    bool exclusive;
    /* only on these (job/hosts.h); "": on any. Never on a machine that is yet to be launched */
    char nodes[HOSTS_TEXT_MAX];
    char exclude[HOSTS_TEXT_MAX]; /* on none of these */
    struct input input;
};

/* "aws/us-east-1". False, with nothing set, if the text is not of this form. Whether the provider
 * exists is not checked: the core knows none. */
bool input_split_place(
    const char *text, char ret_provider[INPUT_PROVIDER_MAX], char ret_region[CORE_NAME_MAX]);
/* The same, or "store": then both are "". */
bool input_parse_place(const char *text, struct input *ret_input);
void input_format_place(const struct input *in, char out[INPUT_PLACE_MAX]);

/* ERR_INVALID names the part. "" asks for nothing. */
int constraints_parse(const char *text, struct constraints *ret_constraints, struct err *e);
bool constraints_name_nodes(const struct constraints *x); /* x may be NULL */
/* "" when nothing is asked for */
void constraints_format(const struct constraints *x, char out[CONSTRAINTS_TEXT_MAX]);

#endif
