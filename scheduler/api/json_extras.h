/* SPDX-License-Identifier: Apache-2.0
 *
 * Features, named resources and licences as JSON. Pure; new references.
 */
#ifndef BELAY_SCHEDULER_API_JSON_EXTRAS_H
#define BELAY_SCHEDULER_API_JSON_EXTRAS_H

#include "base/json.h"
#include "scheduler/core/model/model.h"

json_t *json_features(const char *set);      /* ["avx512", "ib"], of job/feature.h's text */
json_t *json_counts(const struct counts *c); /* {"lego": 4} */
json_t *json_counts_text(const char *text);  /* the same of job/counts.h's text */
json_t *json_stock(const struct stock *s);   /* what is free: {"lego": 2} */
/* The keys gpu_model, gpu_memory_mib, constraint, resources, licences, exclusive, nodelist and
 * exclude of a job into o; text as core/placement/constraints.h has it. */
void json_set_extras(json_t *o, const char *text);

#endif
