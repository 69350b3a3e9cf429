/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the S3 API. Functions that return int return 0, or -1 after turning the
 * reply into an error.
 */
#ifndef BELAY_EMULATOR_S3_PARTS_H
#define BELAY_EMULATOR_S3_PARTS_H

#include "emulator/s3/api.h"

#define S3_XML_HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

/* fmt NULL: the code's usual message. */
int s3_fail(struct s3_call *c, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void s3_open(struct s3_call *c, const char *element); /* the root element of a successful reply */
int s3_query_end(struct s3_call *c);                  /* refuses unread parameters */
/* By the policy of the caller's session; prefix may be NULL. key "": the bucket. */
bool s3_may(const struct s3_call *c, const char *action, const char *key, const char *prefix);

/* Checks Content-MD5 and x-amz-checksum-sha256 against the body; returns the latter, "" if absent.
 */
int s3_check_body(struct s3_call *c, char ret_sha256[S3_CHECKSUM_BYTES]);
int s3_check_space(struct s3_call *c, size_t n);
int s3_check_condition(struct s3_call *c); /* If-None-Match: * */

void s3_list_buckets(struct s3_call *c);
void s3_get_location(struct s3_call *c);
void s3_list_objects(struct s3_call *c);
void s3_delete_objects(struct s3_call *c);
void s3_list_uploads(struct s3_call *c);
void s3_create_upload(struct s3_call *c);
void s3_upload_part(struct s3_call *c);
void s3_complete_upload(struct s3_call *c);
void s3_abort_upload(struct s3_call *c);

#endif
