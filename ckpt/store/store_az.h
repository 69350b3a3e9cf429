/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a container of Azure's blobs: the parts that store_s3_open needs.
 */
#ifndef BELAY_CKPT_STORE_STORE_AZ_H
#define BELAY_CKPT_STORE_STORE_AZ_H

#include "ckpt/store/store.h"

extern const struct store_ops store_az_ops;

#endif
