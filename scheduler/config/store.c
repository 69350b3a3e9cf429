/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/store.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/store.h"
#include "cloud/catalogue.h"
#include "scheduler/config/config.h"
#include "scheduler/config/job_credentials.h"
#include "scheduler/config/readers.h"
#include <stdlib.h>
#include <string.h>

static const char *const encryption_words[] = {"none", "client", "required", NULL};

/* Refuses a store that no agent could open. */
static void check_store(struct yaml_reader *r, const char *url)
{
    const struct yaml_node *node = yaml_opt(r, "store");
    char shown[STR_SHOW_MAX];
    struct err e;
    if (node && r->rc == 0 && (!config_is_plain(url) || str_eq(url, "file:///")))
        yaml_reader_fail(r, node, "expected a URL without blanks, quotes and backslashes, found %s",
            str_show(url, shown));
    else if (r->rc == 0 && url && store_check_url(url, &e) != 0)
        yaml_reader_fail(r, yaml_opt(r, "store"), "%s%s", e.text,
            strchr(url, '%') ? "; in a URL a percent sign is written as %25" : "");
}

/* Returns NULL if the configuration and the environment let belayd create credentials for each job
 * at this store; else what to set, "" if the store has no credentials (a directory). */
static const char *missing_for_job_credentials(const struct config *c)
{
    const char *google = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    const char *id = getenv("AZURE_CLIENT_ID"), *secret = getenv("AZURE_CLIENT_SECRET");
    if (str_starts(c->store, "s3:"))
        return c->store_role ? NULL : "set store_role to a role that belayd may assume";
    if (str_starts(c->store, "gs:"))
        return google && *google ? NULL
                                 : "set store_credentials: job, and GOOGLE_APPLICATION_CREDENTIALS "
                                   "of belayd unless its machine has an account";
    if (str_starts(c->store, "az:"))
        return id && *id && secret && *secret
                   ? NULL
                   : "set store_credentials: job, and AZURE_CLIENT_ID and AZURE_CLIENT_SECRET of "
                     "belayd unless its machine has an identity";
    return "";
}

static void choose_credentials(struct yaml_reader *r, struct config *c)
{
    static const char *const whose[] = {"node", "job", NULL};
    const char *lacks = missing_for_job_credentials(c);
    c->job_credentials = yaml_opt_enum(r, "store_credentials", whose, !lacks) == 1;
    if (lacks && *lacks && !yaml_opt(r, "store_credentials"))
        c->why_node_credentials = lacks;
}

/* Reads the keys of job credentials; call after the store. */
static void read_credentials(struct yaml_reader *r, struct config *c)
{
    static const char *const needed[] = {
        "store_role", "store_sts", "store_kms_key", "store_lifetime"};
    const struct yaml_node *node = yaml_opt(r, "store_credentials");
    struct err e;
    c->store_role = config_opt_text(r, "store_role", 2048);
    choose_credentials(r, c);
    c->store_sts = mem_strdup(config_opt_url(r, "store_sts", 512, "https://", "http://", NULL));
    c->store_kms_key = config_opt_text(r, "store_kms_key", 2048);
    c->store_life_ms = config_opt_time(r, "store_lifetime", SECONDS_MS(1), 0);
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!c->job_credentials && yaml_opt(r, needed[i]))
            yaml_reader_fail(
                r, yaml_opt(r, needed[i]), "%s: this is for store_credentials: job", needed[i]);
    const struct job_credentials o = {.store = c->store,
        .role_arn = c->store_role,
        .kms_key = c->store_kms_key,
        .sts_url = c->store_sts,
        .life_ms = c->store_life_ms};
    if (r->rc == 0 && c->job_credentials && job_credentials_check(&o, &e) != 0)
        yaml_reader_fail(r, node, "%s", e.text);
}

/* Returns the path as part of a file:// URL, with each '%' escaped. */
static char *path_of_url(const char *path)
{
    struct buf out = {0};
    for (; *path; path++)
        if (*path == '%')
            buf_adds(&out, "%25");
        else
            buf_addc(&out, *path);
    return buf_take(&out);
}

static void read_encryption(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "key_file");
    const char *path = yaml_opt_str(r, "key_file", sizeof(c->key_file) - 1, NULL);
    char shown[STR_SHOW_MAX];
    c->encryption =
        (enum config_encryption)yaml_opt_enum(r, "encryption", encryption_words, ENCRYPTION_NONE);
    if (path && path[0] != '/')
        yaml_reader_fail(r, node, "expected an absolute path, found %s", str_show(path, shown));
    config_copy_path(r, "key_file", path, "", c->state_dir, "/checkpoint.keys", c->key_file,
        sizeof(c->key_file));
}

/* Reads the provider and region of the store, such as aws/us-east-1. */
static void read_store_location(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "store_place");
    const char *text = yaml_opt_str(
        r, "store_place", sizeof(c->store_provider) + sizeof(c->store_region) - 2, NULL);
    char shown[STR_SHOW_MAX];
    if (text && !(input_split_location(text, c->store_provider, c->store_region) &&
                    cloud_provider_find(c->store_provider)))
        yaml_reader_fail(r, node,
            "expected the store's provider and region, as in aws/us-east-1 (aws, azure, gcp, "
            "lambda, static), found %s",
            str_show(text, shown));
}

void config_read_store(struct yaml_reader *r, struct config *c)
{
    const char *store = yaml_opt_str(r, "store", sizeof(c->store) - 1, NULL);
    check_store(r, store);
    char *state_in_url = path_of_url(c->state_dir);
    config_copy_path(
        r, "store", store, "file://", state_in_url, "/store", c->store, sizeof(c->store));
    free(state_in_url);
    c->store_uusd_gib_month =
        yaml_opt_uusd(r, "store_usd_per_gib_month", catalogue_store_uusd_gib_month(c->store));
    if (c->store_uusd_gib_month > MODEL_STORE_UUSD_MAX)
        yaml_reader_fail(
            r, yaml_opt(r, "store_usd_per_gib_month"), "expected at most a million dollars");
    read_store_location(r, c);
    read_encryption(r, c);
    read_credentials(r, c);
}
