/* SPDX-License-Identifier: Apache-2.0
 *
 * A fast path for stored specs in exactly the form that job_spec_to_json gives (see spec_plain.c).
 */
#ifndef BELAY_JOB_SPEC_PLAIN_H
#define BELAY_JOB_SPEC_PLAIN_H

#include "job/spec.h"
#include <stddef.h>

/* Reads the compact text of job_spec_to_json's object. False if the text is not in that form:
 * job_spec_from_json has to read it. *ret_spec is then undefined. */
bool job_spec_read_plain(const char *text, size_t n, struct job_spec *ret_spec);

#endif
