/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure credentials: a service principal from a file or the environment, which asks the login
 * service for tokens, or the managed identity of the machine, which asks the metadata service. As a
 * source of bearer tokens (cloud/oauth.h).
 *
 * Secrets are wiped when they are replaced or freed and never get into an error or a log line.
 */
#ifndef BELAY_CLOUD_AZURE_CREDENTIALS_H
#define BELAY_CLOUD_AZURE_CREDENTIALS_H

#include "cloud/oauth.h"

#define AZURE_CREDENTIALS_FILE_MAX 65536

/* Visible ASCII all of them; tenant and client_id of letters, digits, '-' and '.' only. */
struct azure_principal {
    char tenant[129];
    char client_id[129];
    char secret[1025];
};

/* What the environment says; read once, by azure_environment_read. Borrowed strings, NULL where
 * unset or empty. */
struct azure_environment {
    const char *tenant;    /* AZURE_TENANT_ID */
    const char *client_id; /* AZURE_CLIENT_ID; alone, it names one of the machine's identities */
    const char *secret;    /* AZURE_CLIENT_SECRET */
};
void azure_environment_read(struct azure_environment *ret_env);

struct azure_credential_options {
    struct azure_environment env;
    const char *file;      /* NULL: as the environment says */
    const char *login_url; /* as cloud_endpoint gives it */
    /* whom the tokens are for, without the last '/': "https://management.azure.com" */
    const char *audience;
    const char *metadata_url; /* NULL: the real one */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

struct azure_credential_source;

/* Copies what it needs. The file is read when a token is asked for, so that it can be replaced.
 * ERR_CONFIG: a secret in the environment without its principal, a metadata_url that is none. */
int azure_credential_source_create(const struct azure_credential_options *o,
    struct azure_credential_source **ret_source, struct err *e);
/* Waits under way are dropped. NULL is fine. */
void azure_credential_source_destroy(struct azure_credential_source *s);
/* Borrowed; errors of its tokens are ERR_CONFIG (the file is missing or wrong, the machine has no
 * identity) or what the login or metadata service came to. */
struct oauth *azure_credential_tokens(struct azure_credential_source *s);

/* Pure: a JSON object with tenant, appId and password, as `az ad sp create-for-rbac` prints it, or
 * with tenantId, clientId and clientSecret. ERR_CONFIG; never quotes the text. */
int azure_credentials_parse_file(
    const char *text, size_t n, struct azure_principal *ret_principal, struct err *e);

#endif
