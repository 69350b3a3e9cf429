/* SPDX-License-Identifier: Apache-2.0
 *
 * See catalogue.h. Linux, USD. A row: type, vCPUs, memory GiB, GPUs, model, MiB of one GPU,
 * on-demand and typical spot price in micro-dollars an hour (0 = unknown).
 *
 * AWS, us-east-1. On-demand: the price table of the Karpenter AWS provider, of 2026-07-20. Spot A:
 * on-demand less the 30-day saving of the AWS Spot Instance Advisor on 2025-06-28. Spot B: median
 * over zones in SkyPilot's public catalogue, taken between mid-2025 and 2026 (p5.48xlarge:
 * us-west-2).
 *
 * Azure, eastus (ND96isr_H200_v5: westus2). On-demand: the price table of the Karpenter Azure
 * provider, of 2026-06-18. Spot: SkyPilot's public catalogue, taken about 2024 to 2025; also 0
 * where it equalled the on-demand price.
 *
 * GCP, us-central1 (a3-megagpu-8g: us-east4): both from the table of Cyclenerd's
 * google-cloud-pricing-cost-calculator, of 2026-07-30. Google changes spot prices about once a
 * month. N1 and the GPUs attached to it, us-central1. On-demand: Google's list. Spot: SkyPilot's
 * public catalogue, taken between mid-2025 and 2026, in which GPU prices move by a third and more
 * between snapshots.
 */
#include "cloud/catalogue.h"
#include "base/buf.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define GIB_MIB 1024

/* clang-format off */
#define AWS_TYPES(X) \
    X("p3.2xlarge", 8, 61, 1, "V100", 16384, 3060000, 612000 /* A */)               \
    X("p3.8xlarge", 32, 244, 4, "V100", 16384, 12240000, 1460000 /* B */)           \
    X("p3.16xlarge", 64, 488, 8, "V100", 16384, 24480000, 4162000 /* A */)          \
    X("p3dn.24xlarge", 96, 768, 8, "V100", 32768, 31212000, 7270000 /* B */)        \
    X("p4d.24xlarge", 96, 1152, 8, "A100", 40960, 21957642, 8000000 /* B */)        \
    X("p4de.24xlarge", 96, 1152, 8, "A100", 81920, 27447050, 9606000 /* A */)       \
    X("p5.4xlarge", 16, 256, 1, "H100", 81920, 6880000, 0)                          \
    X("p5.48xlarge", 192, 2048, 8, "H100", 81920, 55040000, 14600000 /* B */)       \
    X("p5en.48xlarge", 192, 2048, 8, "H200", 144384, 63296000, 17210000 /* B */)    \
    X("p6-b200.48xlarge", 192, 2048, 8, "B200", 183296, 113932800, 0)               \
    X("g4dn.xlarge", 4, 16, 1, "T4", 16384, 526000, 189000 /* A */)                 \
    X("g5.xlarge", 4, 16, 1, "A10G", 22938, 1006000, 412000 /* A */)                \
    X("g5.12xlarge", 48, 192, 4, "A10G", 22938, 5672000, 2382000 /* A */)           \
    X("g5.48xlarge", 192, 768, 8, "A10G", 22938, 16288000, 4724000 /* A */)         \
    X("g6.xlarge", 4, 16, 1, "L4", 22938, 804800, 410000 /* A */)                   \
    X("g6.12xlarge", 48, 192, 4, "L4", 22938, 4601600, 1887000 /* A */)             \
    X("g6.48xlarge", 192, 768, 8, "L4", 22938, 13350400, 4139000 /* A */)           \
    X("g6e.xlarge", 4, 32, 1, "L40S", 45773, 1861000, 782000 /* A */)               \
    X("g6e.48xlarge", 192, 1536, 8, "L40S", 45773, 30131180, 9642000 /* A */)       \
    X("trn1.2xlarge", 8, 32, 1, "Trainium1", 32768, 1343750, 349000 /* A */)        \
    X("trn1.32xlarge", 128, 512, 16, "Trainium1", 32768, 21500000, 4515000 /* A */) \
    X("m5.2xlarge", 8, 32, 0, "", 0, 384000, 177000 /* A */)                        \
    X("m6i.xlarge", 4, 16, 0, "", 0, 192000, 86000 /* A */)                         \
    X("m7i.8xlarge", 32, 128, 0, "", 0, 1612800, 758000 /* A */)                    \
    X("c6i.4xlarge", 16, 32, 0, "", 0, 680000, 292000 /* A */)                      \
    X("c6a.16xlarge", 64, 128, 0, "", 0, 2448000, 930000 /* A */)                   \
    X("c7g.4xlarge", 16, 32, 0, "", 0, 580000, 168000 /* A */)                      \
    X("r6i.8xlarge", 32, 256, 0, "", 0, 2016000, 564000 /* A */)                    \
    X("m8g.8xlarge", 32, 128, 0, "", 0, 1436160, 562000 /* B */)

#define AZURE_TYPES(X) \
    X("Standard_NC4as_T4_v3", 4, 28, 1, "T4", 16384, 526000, 62700)               \
    X("Standard_NC64as_T4_v3", 64, 440, 4, "T4", 16384, 4352000, 518800)          \
    X("Standard_NC24ads_A100_v4", 24, 220, 1, "A100", 81920, 3673000, 444400)     \
    X("Standard_NC48ads_A100_v4", 48, 440, 2, "A100", 81920, 7346000, 888900)     \
    X("Standard_NC96ads_A100_v4", 96, 880, 4, "A100", 81920, 14692000, 1777700)   \
    X("Standard_ND96asr_v4", 96, 900, 8, "A100", 40960, 27197000, 2991700)        \
    X("Standard_ND96amsr_A100_v4", 96, 1800, 8, "A100", 81920, 32770000, 3604700) \
    X("Standard_NC40ads_H100_v5", 40, 320, 1, "H100", 96256, 6980000, 0)          \
    X("Standard_NC80adis_H100_v5", 80, 640, 2, "H100", 96256, 13960000, 0)        \
    X("Standard_ND96isr_H100_v5", 96, 1900, 8, "H100", 81920, 98320000, 0)        \
    X("Standard_ND96isr_H200_v5", 96, 1850, 8, "H200", 144384, 84800000, 0)       \
    X("Standard_NV36ads_A10_v5", 36, 440, 1, "A10", 24576, 3200000, 800000)       \
    X("Standard_NV72ads_A10_v5", 72, 880, 2, "A10", 24576, 6520000, 1630000)      \
    X("Standard_NC6s_v3", 6, 112, 1, "V100", 16384, 3060000, 397800)              \
    X("Standard_D8s_v5", 8, 32, 0, "", 0, 384000, 0)                              \
    X("Standard_F16s_v2", 16, 32, 0, "", 0, 677000, 0)                            \
    X("Standard_E32s_v5", 32, 256, 0, "", 0, 2016000, 0)

#define GCP_TYPES(X) \
    X("a2-highgpu-1g", 12, 85, 1, "A100", 40960, 3673400, 1928000)       \
    X("a2-highgpu-8g", 96, 680, 8, "A100", 40960, 29387100, 15424200)    \
    X("a2-megagpu-16g", 96, 1360, 16, "A100", 40960, 55739500, 29255700) \
    X("a2-ultragpu-1g", 12, 170, 1, "A100", 81920, 5068800, 2759500)     \
    X("a2-ultragpu-8g", 96, 1360, 8, "A100", 81920, 40550400, 22076400)  \
    X("a3-highgpu-1g", 26, 234, 1, "H100", 81920, 11061200, 6326200)     \
    X("a3-highgpu-8g", 208, 1872, 8, "H100", 81920, 88490000, 50609500)  \
    X("a3-megagpu-8g", 208, 1872, 8, "H100", 81920, 92937600, 23275200)  \
    X("g2-standard-4", 4, 16, 1, "L4", 24576, 706800, 397300)            \
    X("g2-standard-12", 12, 48, 1, "L4", 24576, 1000400, 562400)         \
    X("g2-standard-48", 48, 192, 4, "L4", 24576, 4001700, 2249600)       \
    X("g2-standard-96", 96, 384, 8, "L4", 24576, 8003300, 4499300)       \
    X("n1-standard-4", 4, 15, 0, "", 0, 190000, 52200)                   \
    X("n1-standard-8", 8, 30, 0, "", 0, 380000, 104500)                  \
    X("n1-standard-16", 16, 60, 0, "", 0, 760000, 208900)                \
    X("n1-standard-32", 32, 120, 0, "", 0, 1520000, 417800)              \
    X("n1-standard-64", 64, 240, 0, "", 0, 3040000, 835700)              \
    X("n1-standard-96", 96, 360, 0, "", 0, 4560000, 1253500)             \
    X("n1-highmem-2", 2, 13, 0, "", 0, 118300, 32300)                    \
    X("n1-highmem-4", 4, 26, 0, "", 0, 236600, 64700)                    \
    X("n1-highmem-8", 8, 52, 0, "", 0, 473200, 129300)                   \
    X("n1-highmem-16", 16, 104, 0, "", 0, 946400, 258600)                \
    X("n1-highmem-32", 32, 208, 0, "", 0, 1892800, 517300)               \
    X("n1-highmem-64", 64, 416, 0, "", 0, 3785700, 1034600)              \
    X("n1-highmem-96", 96, 624, 0, "", 0, 5678500, 1551800)              \
    X("e2-standard-8", 8, 32, 0, "", 0, 268000, 160800)                  \
    X("n2-standard-8", 8, 32, 0, "", 0, 388500, 184200)                  \
    X("n2d-standard-32", 32, 128, 0, "", 0, 1351900, 391300)             \
    X("t2d-standard-16", 16, 64, 0, "", 0, 675900, 252200)               \
    X("c2-standard-16", 16, 64, 0, "", 0, 835200, 398700)                \
    X("c3-highcpu-88", 88, 176, 0, "", 0, 3742300, 917000)

/* Lambda's price table as in SkyPilot's public catalogue between mid-2025 and 2026; equal in all
 * regions. */
#define LAMBDA_TYPES(X) \
    X("gpu_1x_a10", 30, 200, 1, "A10", 24576, 1290000, 0)                  \
    X("gpu_1x_a6000", 14, 100, 1, "RTX A6000", 49152, 1090000, 0)          \
    X("gpu_1x_a100", 30, 200, 1, "A100", 40960, 1990000, 0)                \
    X("gpu_8x_a100_80gb_sxm4", 240, 1800, 8, "A100", 81920, 22320000, 0)   \
    X("gpu_8x_v100_n", 88, 448, 8, "V100", 16384, 6320000, 0)              \
    X("gpu_1x_h100_pcie", 26, 200, 1, "H100 PCIe", 81920, 3290000, 0)      \
    X("gpu_1x_h100_sxm5", 26, 225, 1, "H100", 81920, 4290000, 0)           \
    X("gpu_8x_h100_sxm5", 208, 1800, 8, "H100", 81920, 31920000, 0)        \
    X("cpu_4x_general", 4, 16, 0, "", 0, 200000, 0)
/* clang-format on */

#define ROW(provider, name, vcpu, gib, gpu, model, gpu_mib, on_demand, spot)                       \
    {provider, name, vcpu, (int64_t)(gib)*GIB_MIB, gpu, model, gpu_mib, on_demand, spot},
#define NAME(name, vcpu, gib, gpu, model, gpu_mib, on_demand, spot) name,

#define AWS_ROW(...) ROW("aws", __VA_ARGS__)
#define AZURE_ROW(...) ROW("azure", __VA_ARGS__)
#define GCP_ROW(...) ROW("gcp", __VA_ARGS__)
#define LAMBDA_ROW(...) ROW("lambda", __VA_ARGS__)

static const struct catalogue_type types[] = {
    AWS_TYPES(AWS_ROW) AZURE_TYPES(AZURE_ROW) GCP_TYPES(GCP_ROW) LAMBDA_TYPES(LAMBDA_ROW)};
static const char *const aws_names[] = {AWS_TYPES(NAME) NULL};
static const char *const azure_names[] = {AZURE_TYPES(NAME) NULL};
static const char *const gcp_names[] = {GCP_TYPES(NAME) NULL};
static const char *const lambda_names[] = {LAMBDA_TYPES(NAME) NULL};
static const char *const no_names[] = {NULL};

/* Limits from Compute Engine's table of GPU models for N1. Its memory limits need no check: they
 * allow 6.5 GiB per vCPU, as much as the largest N1 machines have. */
static const struct catalogue_gpu gpus[] = {
    {"p4", "nvidia-tesla-p4", "P4", 8192, 600000, 223600, {24, 48, 96, 0}},
    {"p100", "nvidia-tesla-p100", "P100", 16384, 1460000, 584000, {16, 32, 96, 0}},
    {"t4", "nvidia-tesla-t4", "T4", 16384, 350000, 140000, {48, 48, 96, 0}},
    {"v100", "nvidia-tesla-v100", "V100", 16384, 2480000, 823100, {12, 24, 48, 96}},
};
#define N_GPUS (sizeof(gpus) / sizeof(gpus[0]))
static const char *const gpu_names[] = {"p4", "p100", "t4", "v100", NULL};

const char *const *catalogue_names(const char *provider)
{
    if (str_eq(provider, "aws"))
        return aws_names;
    if (str_eq(provider, "azure"))
        return azure_names;
    if (str_eq(provider, "gcp"))
        return gcp_names;
    return str_eq(provider, "lambda") ? lambda_names : no_names;
}

static const struct catalogue_type *find_row(const char *provider, const char *type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (str_eq(types[i].provider, provider) && str_eq(types[i].type, type))
            return &types[i];
    return NULL;
}

/* ---- attached GPUs ---- */

bool catalogue_takes_gpus(const char *machine)
{
    return str_starts(machine, "n1-") ||
           str_starts(machine, "custom-"); /* a custom machine without a family is N1 */
}

const struct catalogue_gpu *catalogue_gpu_find(const char *accelerator)
{
    for (size_t i = 0; i < N_GPUS; i++)
        if (str_eq(gpus[i].accelerator, accelerator))
            return &gpus[i];
    return NULL;
}

int32_t catalogue_gpu_max_vcpus(const struct catalogue_gpu *g, int64_t n)
{
    for (int i = 0; i < CATALOGUE_GPU_COUNTS; i++)
        if (n == INT64_C(1) << i)
            return g->max_vcpus[i];
    return 0;
}

bool catalogue_attach(char *type, size_t size, int64_t n, const char *gpu)
{
    char count[24] = "";
    size_t len = strlen(type);
    if (n > 1)
        snprintf(count, sizeof(count), "%lldx", (long long)n);
    if (len + 1 + strlen(count) + strlen(gpu) >= size)
        return false;
    snprintf(type + len, size - len, "+%s%s", count, gpu);
    return true;
}

/* Parses the part after '+'. Each name has one spelling, so that names can be compared. */
static int read_gpus(const char *text, struct catalogue_parts *p, struct err *e)
{
    char shown[STR_SHOW_MAX];
    const char *name = text;
    p->n_gpus = 1;
    if (name[0] >= '2' && name[0] <= '9' && name[1] == 'x') {
        p->n_gpus = name[0] - '0';
        name += 2;
    }
    for (size_t i = 0; i < N_GPUS && !p->gpu; i++)
        if (str_eq(gpus[i].name, name))
            p->gpu = &gpus[i];
    if (p->gpu)
        return 0;
    struct buf known = {0};
    str_list_names(&known, name, gpu_names);
    err_set(e, ERR_CONFIG,
        "%s cannot be attached to a machine: expected a GPU, as in n1-standard-8+t4, or "
        "several, as in n1-standard-16+2xt4; %s",
        str_show(text, shown), buf_str(&known));
    buf_deinit(&known);
    return ERR_CONFIG;
}

static int check_parts(const char *provider, const struct catalogue_parts *p, struct err *e)
{
    const struct catalogue_type *machine = find_row(provider, p->machine);
    int32_t max = catalogue_gpu_max_vcpus(p->gpu, p->n_gpus);
    if (!catalogue_takes_gpus(p->machine))
        return err_set(e, ERR_CONFIG,
            "no GPU can be attached to %s: only N1 machine types accept GPUs", p->machine);
    if (max == 0)
        return err_set(e, ERR_CONFIG, "no machine can have %d GPUs %s: expected 1, 2, 4%s",
            (int)p->n_gpus, p->gpu->name,
            p->gpu->max_vcpus[CATALOGUE_GPU_COUNTS - 1] ? " or 8" : "");
    if (machine && machine->vcpus > max)
        return err_set(e, ERR_CONFIG,
            "%s has %d vCPUs; with %d of the GPU %s at most %d are allowed", p->machine,
            (int)machine->vcpus, (int)p->n_gpus, p->gpu->name, (int)max);
    return 0;
}

int catalogue_split(
    const char *provider, const char *type, struct catalogue_parts *ret_parts, struct err *e)
{
    struct catalogue_parts p = {0};
    char shown[STR_SHOW_MAX];
    const char *plus = str_eq(provider, "gcp") ? strchr(type, '+') : NULL;
    size_t n = plus ? (size_t)(plus - type) : strlen(type);
    if (strlen(type) < sizeof(p.machine))
        memcpy(p.machine, type, n);
    if (!str_is_name(p.machine, sizeof(p.machine) - 1))
        return err_set(
            e, ERR_CONFIG, "%s is not an instance type of the provider", str_show(type, shown));
    int rc = plus ? read_gpus(plus + 1, &p, e) : 0;
    if (rc == 0 && plus)
        rc = check_parts(provider, &p, e);
    if (rc == 0)
        *ret_parts = p;
    return rc;
}

/* ---- types ---- */

static struct catalogue_type add_gpus(
    const struct catalogue_type *machine, const struct catalogue_parts *p, const char *type)
{
    struct catalogue_type t = *machine;
    t.type = type;
    t.gpus = p->n_gpus;
    t.gpu_model = p->gpu->model;
    t.gpu_memory_mib = p->gpu->memory_mib;
    t.on_demand_uusd_h += p->n_gpus * p->gpu->on_demand_uusd_h;
    t.spot_uusd_h += p->n_gpus * p->gpu->spot_uusd_h;
    return t;
}

int catalogue_find(
    const char *provider, const char *type, struct catalogue_type *ret_type, struct err *e)
{
    const struct catalogue_type *row = find_row(provider, type);
    struct catalogue_parts p = {0};
    const char *machine = type;
    char shown[STR_SHOW_MAX];
    if (!row && str_eq(provider, "gcp") && strchr(type, '+')) {
        int rc = catalogue_split(provider, type, &p, e);
        if (rc != 0)
            return rc;
        machine = p.machine;
        row = find_row(provider, machine);
    }
    if (!row) {
        const char *near = str_nearest(machine, catalogue_names(provider));
        return err_set(e, ERR_NOT_FOUND, "%s is not known%s%s%s", str_show(machine, shown),
            near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    *ret_type = p.gpu ? add_gpus(row, &p, type) : *row;
    return 0;
}

const char *catalogue_region(const char *provider, const char *type)
{
    if (str_eq(provider, "aws"))
        return "us-east-1";
    if (str_eq(provider, "azure"))
        return str_eq(type, "Standard_ND96isr_H200_v5") ? "westus2" : "eastus";
    if (str_eq(provider, "gcp"))
        return str_eq(type, "a3-megagpu-8g") ? "us-east4" : "us-central1";
    return "";
}

static const char *spot_source(const char *provider, const char *type)
{
    if (str_eq(provider, "aws"))
        return str_eq(type, "p5.48xlarge") ? "typical spot price of 2025 or 2026, us-west-2"
                                           : "typical spot price of 2025 or 2026, us-east-1";
    if (str_eq(provider, "azure"))
        return "typical spot price of 2024 or 2025";
    return str_starts(type, "n1-") ? "typical spot price of 2025 or 2026, us-central1"
                                   : "spot price of 2026-07-30";
}

const char *catalogue_source(const char *provider, const char *type, bool spot)
{
    if (spot)
        return spot_source(provider, type);
    if (str_eq(provider, "aws"))
        return "list price of 2026-07-20, us-east-1";
    if (str_eq(provider, "azure"))
        return str_eq(type, "Standard_ND96isr_H200_v5") ? "list price of 2026-06-18, westus2"
                                                        : "list price of 2026-06-18, eastus";
    if (str_eq(provider, "gcp"))
        return str_eq(type, "a3-megagpu-8g") ? "list price of 2026-07-30, us-east4"
               : str_starts(type, "n1-")     ? "list price, us-central1"
                                             : "list price of 2026-07-30, us-central1";
    return "list price of 2025 or 2026, all regions";
}

/* c7g.4xlarge, r8gd.metal: a g after the generation. Not g5g or g5.xlarge, whose g precedes it. */
static bool is_arm_of_aws(const char *type)
{
    size_t n = strcspn(type, "0123456789");
    n += strspn(type + n, "0123456789");
    return type[n] == 'g';
}

/* Standard_D8ps_v5, Standard_E4pds_v5: a p after the number of vCPUs. */
static bool is_arm_of_azure(const char *type)
{
    const char *size = strchr(type, '_');
    size_t n = size ? strcspn(size, "0123456789") : 0;
    n += size ? strspn(size + n, "0123456789") : 0;
    return size && size[n] == 'p';
}

const char *catalogue_arch(const char *provider, const char *type)
{
    bool arm;
    if (str_eq(provider, "aws"))
        arm = is_arm_of_aws(type);
    else if (str_eq(provider, "azure"))
        arm = is_arm_of_azure(type);
    else if (str_eq(provider, "gcp"))
        arm = str_starts(type, "t2a-") || str_starts(type, "c4a-") || str_starts(type, "n4a-") ||
              str_starts(type, "a4x-");
    else if (str_eq(provider, "lambda"))
        arm = strstr(type, "gh200") != NULL;
    else
        return "";
    return arm ? "aarch64" : "x86_64";
}
