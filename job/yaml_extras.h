/* SPDX-License-Identifier: Apache-2.0
 *
 * Features and named counts in YAML files, for the configurations of belayd and agents:
 *
 *     features: [avx512, ib]
 *     resources: {lego: 4}
 */
#ifndef BELAY_JOB_YAML_EXTRAS_H
#define BELAY_JOB_YAML_EXTRAS_H

#include "job/counts.h"
#include "job/feature.h"
#include "base/yaml.h"

/* A set as defined in job/feature.h; "" if the key is absent. */
void yaml_opt_features(struct yaml_reader *r, const char *key, char ret_set[FEATURES_TEXT_MAX]);
/* Reads names with a count of 1 .. COUNTS_NUMBER_MAX each, at most max; returns how many. Names are
 * unique. */
size_t yaml_opt_count_list(struct yaml_reader *r, const char *key, struct count *out, size_t max);
/* The same as a text of job/counts.h; "" if the key is absent. */
void yaml_opt_counts(struct yaml_reader *r, const char *key, char out[COUNTS_TEXT_MAX]);

#endif
