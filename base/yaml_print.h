/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON values as YAML, for people.
 */
#ifndef BELAY_BASE_YAML_PRINT_H
#define BELAY_BASE_YAML_PRINT_H

#include <jansson.h>
#include <stdio.h>

/* Prints a document. Texts that YAML would read as another type are quoted. Control characters are
 * escaped. Whether all was written is for the caller to see (ferror). */
void yaml_print(const json_t *v, FILE *out);

#endif
