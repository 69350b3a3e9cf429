/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance types: size and on-demand list price, from the table compiled into the program
 * (catalogue.c, which gives the date of each figure). A pool file may override the price.
 *
 * Google sells GPUs separately from the machines they are attached to. Here such a machine is a
 * type like any other, named MACHINE+GPU, or MACHINE+NxGPU for more than one: "n1-standard-8+t4",
 * "n1-standard-16+2xt4". Names are unique.
 */
#ifndef BELAY_CLOUD_CATALOGUE_H
#define BELAY_CLOUD_CATALOGUE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CATALOGUE_NAME_MAX 64 /* a type, a machine: bytes including the NUL */

struct catalogue_type {
    const char *provider; /* "aws" */
    const char *type;
    int32_t vcpus;
    int64_t memory_mib;
    int32_t gpus;
    const char *gpu_model;    /* "" without GPUs */
    int64_t gpu_memory_mib;   /* of one GPU */
    int64_t on_demand_uusd_h; /* in the table's region */
    int64_t spot_uusd_h;      /* typical, used until a price has been read; 0 = unknown */
};

/* ERR_NOT_FOUND, with the nearest name, if the table does not have the type; ERR_CONFIG as
 * catalogue_split. The result's texts are static, except `type`, which may be the argument. */
int catalogue_find(
    const char *provider, const char *type, struct catalogue_type *ret_type, struct err *e);

/* Processor architecture as uname(1) prints it: "aarch64" if the provider's type name says so, else
 * "x86_64". Works for types outside the table. "" if the provider's names do not show it. */
const char *catalogue_arch(const char *provider, const char *type);

/* The region in which the table's on-demand price of a type applies: "us-east-1"; "" for all. */
const char *catalogue_region(const char *provider, const char *type);
/* Region and date of the on-demand or spot price, for people. */
const char *catalogue_source(const char *provider, const char *type, bool spot);

/* The types of one provider without attached GPUs: NULL-terminated names for str_nearest; static.
 */
const char *const *catalogue_names(const char *provider);

/* ---- volumes ---- */

/* Price of a GiB of this volume type per month; -1 if it is not in the table. *ret_source says
 * where the price comes from, for people; static. */
int64_t catalogue_volume_uusd(const char *provider, const char *type, const char **ret_source);
/* The billed size: Azure sells disks in sizes that double from 4 GiB on. */
int64_t catalogue_volume_billed_gib(const char *provider, const char *type, int64_t gib);

/* ---- data ---- */

/* What the provider bills for a GiB that leaves, to another of its own regions and to anywhere
 * else; what arrives costs nothing. False, with nothing set, if that is unknown. */
bool catalogue_egress(
    const char *provider, int64_t *ret_to_region_uusd_gib, int64_t *ret_out_uusd_gib);
/* Price of keeping a GiB for a month in the store of this URL, in its usual storage class; 0 for a
 * directory. */
int64_t catalogue_store_uusd_gib_month(const char *url);

/* ---- attached GPUs ---- */

#define CATALOGUE_GPU_COUNTS 4

struct catalogue_gpu {
    const char *name;        /* in the name of a type: "t4" */
    const char *accelerator; /* the provider's name: "nvidia-tesla-t4" */
    const char *model;       /* "T4" */
    int64_t memory_mib;      /* of one, like the prices */
    int64_t on_demand_uusd_h, spot_uusd_h;
    /* maximum vCPUs of a machine with 1, 2, 4, 8 of them; 0 = not available */
    int32_t max_vcpus[CATALOGUE_GPU_COUNTS];
};

struct catalogue_parts {
    char machine[CATALOGUE_NAME_MAX];
    const struct catalogue_gpu *gpu; /* NULL if none is attached */
    int32_t n_gpus;
};

/* Splits a type's name; for a provider that attaches no GPUs all of it is the machine. The machine
 * need not be in the table. ERR_CONFIG: malformed, an unknown GPU, a machine that takes no GPU, or
 * too many. */
int catalogue_split(
    const char *provider, const char *type, struct catalogue_parts *ret_parts, struct err *e);

/* The reverse: appends "+GPU" or "+NxGPU" to a machine's name; n > 0. False, with nothing appended,
 * if there is no space. */
bool catalogue_attach(char *type, size_t size, int64_t n, const char *gpu);

/* Whether it is one of Google's machines without GPUs of its own that accept some: N1. */
bool catalogue_takes_gpus(const char *machine);

/* Finds a GPU by the provider's name; NULL if unknown. */
const struct catalogue_gpu *catalogue_gpu_find(const char *accelerator);

/* Maximum vCPUs of a machine with n of them; 0 if n is not available. */
int32_t catalogue_gpu_max_vcpus(const struct catalogue_gpu *g, int64_t n);

#endif
