/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a bucket of S3, of any server that speaks its protocol, or of Google Cloud Storage;
 * and, with store_az.h, in an Azure container.
 */
#ifndef BELAY_CKPT_STORE_STORE_S3_H
#define BELAY_CKPT_STORE_STORE_S3_H

#include "ckpt/store/store.h"

/* As store_open, for "s3://...", "gs://..." and "az://...": see s3_location_parse. Sends no
 * request. */
int store_s3_open(
    const char *url, const struct store_options *o, struct store **ret_store, struct err *e);

#endif
