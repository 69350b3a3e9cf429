/* SPDX-License-Identifier: Apache-2.0
 *
 * AWS credentials: from the environment, else from the shared file (~/.aws/credentials, by
 * profile), else from the instance's role through the metadata service. Temporary ones are renewed
 * before they expire.
 *
 * Secrets are wiped when replaced or freed and never appear in an error or a log line.
 */
#ifndef BELAY_CLOUD_AWS_CREDENTIALS_H
#define BELAY_CLOUD_AWS_CREDENTIALS_H

#include "base/http.h"
#include "base/list.h"
#include "base/timers.h"

#define AWS_CREDENTIALS_FILE_MAX (1024 * 1024)
#define AWS_SESSION_TOKEN_MAX 8192

struct aws_credentials {
    char access_key[129];
    char secret_key[257];
    char session_token[AWS_SESSION_TOKEN_MAX + 1]; /* "" if none */
    struct wall expires;                           /* WALL_NONE if they do not expire */
};

/* The relevant environment variables, read once by aws_environment_read. Borrowed strings, NULL
 * where unset or empty. */
struct aws_environment {
    const char *access_key, *secret_key, *session_token;
    const char *credentials_file; /* AWS_SHARED_CREDENTIALS_FILE */
    const char *profile;          /* AWS_PROFILE */
    const char *home;
    bool metadata_disabled; /* AWS_EC2_METADATA_DISABLED=true */
};
void aws_environment_read(struct aws_environment *ret_env);

struct aws_credential_options {
    struct aws_environment env;
    const char *credentials_file; /* NULL for the environment's, else ~/.aws/credentials */
    const char *profile;          /* NULL for the environment's, else "default" */
    const char *metadata_url;     /* NULL for http://169.254.169.254 */
    struct http_client *http;     /* borrowed until destroy, like timers */
    struct timers *timers;
};

struct aws_credential_source;

/* Copies what it needs. ERR_CONFIG: half a key pair in the environment, a bad metadata_url. */
int aws_credential_source_create(const struct aws_credential_options *o,
    struct aws_credential_source **ret_source, struct err *e);
/* Drops pending waits: their done does not run. s may be NULL. */
void aws_credential_source_destroy(struct aws_credential_source *s);

/* On success e is NULL and c is borrowed for the call. ERR_CONFIG: there are no credentials, or the
 * file is malformed; ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_DENIED, ERR_INVALID: from the metadata
 * service. */
typedef void (*aws_credentials_fn)(void *ctx, const struct err *e, const struct aws_credentials *c);

/* A wait for credentials; lives inside the object that waits. Private. */
struct aws_credentials_wait {
    struct link link;
    aws_credentials_fn done;
    void *ctx;
};

/* done runs once, not inside the call. If nothing usable is cached, reads the file (blocking,
 * small) or asks the metadata service. */
void aws_credentials_get(struct aws_credential_source *s, struct aws_credentials_wait *w,
    aws_credentials_fn done, void *ctx);
/* done will not run. No-op on a wait that is over or zeroed. */
void aws_credentials_cancel(struct aws_credentials_wait *w);

/* Reports that the provider refused the last credentials: the next get reads them again. Returns
 * false if that cannot help because they came from the environment. */
bool aws_credentials_refused(struct aws_credential_source *s);

/* Pure: the profile's keys in the text of a shared credentials file. ERR_NOT_FOUND: no such profile
 * (the error names the nearest). ERR_CONFIG: a malformed line (with its number), a profile without
 * keys, a value too long. */
int aws_credentials_parse_file(const char *text, size_t n, const char *profile,
    struct aws_credentials *ret_credentials, struct err *e);

/* Pure: parses the reply of iam/security-credentials/ROLE. ERR_INVALID; ERR_UNAVAILABLE if its Code
 * is not "Success". */
int aws_credentials_parse_role(
    const char *text, size_t n, struct aws_credentials *ret_credentials, struct err *e);

#endif
