/* SPDX-License-Identifier: Apache-2.0
 *
 * Features and named counts of a YAML file, as configurations of belayd and of agents have them:
 *
 *     features: [avx512, ib]
 *     resources: {lego: 4}
 */
#ifndef BELAY_JOB_YAML_EXTRAS_H
#define BELAY_JOB_YAML_EXTRAS_H

#include "job/counts.h"
#include "job/feature.h"
#include "base/yaml.h"

/* A set as job/feature.h has it; "" when the key is absent. */
void yaml_opt_features(struct yaml_reader *r, const char *key, char ret_set[FEATURES_TEXT_MAX]);
/* Names and 1 .. COUNTS_NUMBER_MAX of each, into max places; returns how many. No name twice. */
size_t yaml_opt_count_list(struct yaml_reader *r, const char *key, struct count *out, size_t max);
/* The same as a text of job/counts.h; "" when the key is absent. */
void yaml_opt_counts(struct yaml_reader *r, const char *key, char out[COUNTS_TEXT_MAX]);

#endif
