/* SPDX-License-Identifier: Apache-2.0
 *
 * What an instance type is: its size and its on-demand list price, from the table compiled into the
 * program (catalogue.c; figures with their dates there). A pool file may override the price.
 *
 * Google sells GPUs apart from the machines that they are attached to. Such a machine is a type
 * like any other here, by the name MACHINE+GPU, or MACHINE+NxGPU for more than one:
 * "n1-standard-8+t4", "n1-standard-16+2xt4". Each has that one name.
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
    int64_t on_demand_uusd_h; /* in the region the table was made for */
    int64_t spot_uusd_h;      /* typical; 0: unknown. Only until a price has been read */
};

/* ERR_NOT_FOUND, with the nearest name: the table does not have it. ERR_CONFIG: as catalogue_split.
 * The type's texts are static, but for `type`, which may be the one that was given. */
int catalogue_find(
    const char *provider, const char *type, struct catalogue_type *ret_type, struct err *e);

/* Of its processors, as uname(1) says it: "aarch64" where the provider's way of naming types says
 * so, else "x86_64". Of any type, also one that the table does not have; "" with a provider whose
 * names say nothing of it. */
const char *catalogue_arch(const char *provider, const char *type);

/* Where the table's on-demand price of a type that it has is in force: "us-east-1"; "":
 * everywhere. */
const char *catalogue_region(const char *provider, const char *type);
/* Where its on-demand or spot price was taken, and when, for people. */
const char *catalogue_source(const char *provider, const char *type, bool spot);

/* The types of one provider without attached GPUs, NULL-terminated names for str_nearest; borrowed
 * for ever. */
const char *const *catalogue_names(const char *provider);

/* ---- volumes ---- */

/* What a GiB of a volume of this type costs a month, -1: the table does not have it. *ret_source:
 * where that comes from, for people; static. */
int64_t catalogue_volume_uusd(const char *provider, const char *type, const char **ret_source);
/* The size that is billed: Azure sells its disks in sizes that double from 4 GiB on. */
int64_t catalogue_volume_billed_gib(const char *provider, const char *type, int64_t gib);

/* ---- attached GPUs ---- */

#define CATALOGUE_GPU_COUNTS 4

struct catalogue_gpu {
    const char *name;        /* in the name of a type: "t4" */
    const char *accelerator; /* the provider's: "nvidia-tesla-t4" */
    const char *model;       /* "T4" */
    int64_t memory_mib;      /* like the prices, of one */
    int64_t on_demand_uusd_h, spot_uusd_h;
    /* 1, 2, 4, 8 of them go with machines of so many vCPUs, or fewer; 0: with none. */
    int32_t max_vcpus[CATALOGUE_GPU_COUNTS];
};

struct catalogue_parts {
    char machine[CATALOGUE_NAME_MAX];
    const struct catalogue_gpu *gpu; /* NULL: none is attached */
    int32_t n_gpus;
};

/* Takes a type's name apart; with a provider that attaches no GPUs it is all machine. The machine
 * need not be in the table. ERR_CONFIG: it is not of this form, there is no such GPU, it cannot be
 * attached to this machine, or not so many. */
int catalogue_split(
    const char *provider, const char *type, struct catalogue_parts *ret_parts, struct err *e);

/* Puts it together again: adds "+GPU" or "+NxGPU" to a machine's name, of n > 0. False, and nothing
 * added: no room. */
bool catalogue_attach(char *type, size_t size, int64_t n, const char *gpu);

/* Google's machines that have no GPUs of their own but take some: N1. */
bool catalogue_takes_gpus(const char *machine);

/* By the provider's name of it; NULL: none. */
const struct catalogue_gpu *catalogue_gpu_find(const char *accelerator);

/* With n of them a machine has at most so many vCPUs; 0: there is none with n. */
int32_t catalogue_gpu_max_vcpus(const struct catalogue_gpu *g, int64_t n);

#endif
