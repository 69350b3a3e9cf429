/* SPDX-License-Identifier: Apache-2.0
 *
 * Features, named resources and licences as JSON. Pure; new references.
 */
#ifndef BELAY_SCHEDULER_API_JSON_CONSTRAINTS_H
#define BELAY_SCHEDULER_API_JSON_CONSTRAINTS_H

#include "base/json.h"
#include "scheduler/core/model/model.h"

json_t *json_features(const char *set);      /* ["avx512", "ib"], from a text of job/feature.h */
json_t *json_counts(const struct counts *c); /* {"lego": 4} */
json_t *json_counts_text(const char *text);  /* the same from a text of job/counts.h */
json_t *json_stock(const struct stock *s);   /* the free amounts: {"lego": 2} */
/* Sets the keys gpu_model, gpu_memory_mib, constraint, resources, licences, exclusive, nodelist and
 * exclude of a job in o; text is in the form of core/placement/constraints.h. */
void json_set_constraints(json_t *o, const char *text);

#endif
