/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a bucket of S3, of any server that speaks its protocol, or of Google Cloud Storage;
 * and, by store_az.h, in a container of Azure's.
 */
#ifndef BELAY_CKPT_STORE_STORE_S3_H
#define BELAY_CKPT_STORE_STORE_S3_H

#include "ckpt/store/store.h"

/* As store_open, for "s3://...", "gs://..." and "az://...": see s3_place_parse. Asks nobody
 * anything. */
int store_s3_open(
    const char *url, const struct store_options *o, struct store **ret_store, struct err *e);

#endif
