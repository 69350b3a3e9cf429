/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading one provider's section of the configuration: shared by config.c and the fronts.
 */
#ifndef BELAY_EMULATOR_CONFIG_SECTION_H
#define BELAY_EMULATOR_CONFIG_SECTION_H

#include "base/yaml.h"

#define CONFIG_PATH_MAX 4096

struct config_section {
    struct yaml_reader r; /* of the section's mapping */
    const char *file;     /* for messages; paths in the text are relative to its directory */
    struct err *e;
};

/* A reader for a mapping inside the section; its errors become the section's. */
void config_inner_init(
    struct config_section *s, struct yaml_reader *inner, const struct yaml_node *map);
void config_inner_finish(struct config_section *s, struct yaml_reader *inner);

/* A NULL-terminated list of names, freed with config_names_free; NULL if the key is absent. */
const char **config_names(struct config_section *s, const char *key);
void config_names_free(const char **names);

/* Resolves a path from the text. The caller frees it. */
char *config_resolve(const char *file, const char *path);

#endif
