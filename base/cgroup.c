/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const char *const controllers[CGROUP_KINDS] = {
    NULL, "freezer", "memory", "cpu", "pids", "devices"};

/* The first mount of a hierarchy. */
struct mount {
    char *root;  /* name of the group that is mounted; "/" = the whole hierarchy */
    char *point; /* its directory */
};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

/* Parses a line of mountinfo, "36 35 0:30 ROOT POINT options [tags] - TYPE source SUPER", and
 * modifies it. True, and *ret_mount set, if it mounts a hierarchy of this kind. */
static bool match_mount(char *line, enum cgroup_kind kind, struct mount *ret_mount)
{
    char *save, *fields[5], *tail = strstr(line, " - ");
    if (!tail)
        return false;
    *tail = '\0';
    for (size_t i = 0; i < 5; i++)
        if (!(fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save)))
            return false;
    char *type = strtok_r(tail + 3, " ", &save), *source = strtok_r(NULL, " ", &save);
    char *super = strtok_r(NULL, " ", &save);
    if (!type || !source || !super || strchr(fields[4], '\\'))
        return false;
    bool is_it = kind == CGROUP_V2 ? str_eq(type, "cgroup2")
                                   : str_eq(type, "cgroup") && has_word(super, controllers[kind]);
    if (is_it)
        *ret_mount = (struct mount){.root = mem_strdup(fields[3]), .point = mem_strdup(fields[4])};
    return is_it;
}

static bool find_mount(const char *mountinfo, enum cgroup_kind kind, struct mount *ret_mount)
{
    char *text = mem_strdup(mountinfo), *save = NULL;
    bool found = false;
    for (char *line = strtok_r(text, "\n", &save); line && !found;
         line = strtok_r(NULL, "\n", &save))
        found = match_mount(line, kind, ret_mount);
    free(text);
    return found;
}

/* text has lines "N:controllers:/path", and "0::/path" for v2. */
char *cgroup_name(const char *text, enum cgroup_kind kind)
{
    char *copy = mem_strdup(text), *save = NULL, *name = NULL;
    for (char *line = strtok_r(copy, "\n", &save); line && !name;
         line = strtok_r(NULL, "\n", &save)) {
        char *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        *path++ = '\0';
        list++;
        if (kind == CGROUP_V2 ? *list == '\0' : has_word(list, controllers[kind]))
            name = mem_strdup(path);
    }
    free(copy);
    return name;
}

/* The directory of the group `name`; NULL if the group is outside the mounted part. */
static char *dir_of(const struct mount *m, const char *name)
{
    size_t skip = str_eq(m->root, "/") ? 0 : strlen(m->root);
    if (str_starts(name, "/..") || strncmp(name, m->root, skip) != 0 ||
        (name[skip] != '/' && name[skip] != '\0'))
        return NULL;
    return mem_printf("%s%s", m->point, str_eq(name + skip, "/") ? "" : name + skip);
}

void cgroup_find(
    const char *mountinfo, enum cgroup_kind kind, const char *name, struct cgroup_found *ret_at)
{
    struct mount m;
    *ret_at = (struct cgroup_found){0};
    if (!find_mount(mountinfo, kind, &m))
        return;
    *ret_at = (struct cgroup_found){
        .is_mounted = true, .dir = name ? dir_of(&m, name) : NULL, .top_len = strlen(m.point)};
    free(m.root);
    free(m.point);
}
