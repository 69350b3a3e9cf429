/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure credentials: a service principal from a file or the environment, with tokens from the login
 * service, or the machine's managed identity, with tokens from the metadata service. Implements a
 * source of bearer tokens (cloud/oauth.h).
 *
 * Secrets are wiped when replaced or freed and never appear in an error or a log line.
 */
#ifndef BELAY_CLOUD_AZURE_CREDENTIALS_H
#define BELAY_CLOUD_AZURE_CREDENTIALS_H

#include "cloud/oauth.h"

#define AZURE_CREDENTIALS_FILE_MAX 65536

/* All visible ASCII; tenant and client_id only of letters, digits, '-' and '.'. */
struct azure_principal {
    char tenant[129];
    char client_id[129];
    char secret[1025];
};

/* The relevant environment variables, read once by azure_environment_read. Borrowed strings, NULL
 * where unset or empty. */
struct azure_environment {
    const char *tenant; /* AZURE_TENANT_ID */
    /* AZURE_CLIENT_ID; without a secret it names one of the machine's identities */
    const char *client_id;
    const char *secret; /* AZURE_CLIENT_SECRET */
};
void azure_environment_read(struct azure_environment *ret_env);

struct azure_credential_options {
    struct azure_environment env;
    const char *file;      /* NULL for the environment's */
    const char *login_url; /* as cloud_endpoint returns it */
    /* audience of the tokens, without the last '/': "https://management.azure.com" */
    const char *audience;
    const char *metadata_url; /* NULL for the real one */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

struct azure_credential_source;

/* Copies what it needs. The file is read for each token, so that it can be replaced. ERR_CONFIG: a
 * secret in the environment without its principal, a malformed metadata_url. */
int azure_credential_source_create(const struct azure_credential_options *o,
    struct azure_credential_source **ret_source, struct err *e);
/* Drops pending waits. s may be NULL. */
void azure_credential_source_destroy(struct azure_credential_source *s);
/* Borrowed. Errors of its tokens are ERR_CONFIG (the file is missing or malformed, the machine has
 * no identity) or those of the login or metadata service. */
struct oauth *azure_credential_tokens(struct azure_credential_source *s);

/* Pure: a JSON object with tenant, appId and password, as `az ad sp create-for-rbac` prints it, or
 * with tenantId, clientId and clientSecret. ERR_CONFIG; never quotes the text. */
int azure_credentials_parse_file(
    const char *text, size_t n, struct azure_principal *ret_principal, struct err *e);

#endif
