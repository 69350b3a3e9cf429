/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/rapl.h"

#include "agent/gpu/kernel_text.h"
#include "base/fs.h"
#include "base/str.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 64

static bool read_file(const struct rapl *r, const char *zone, const char *name, char out[TEXT_MAX])
{
    char path[512];
    if (snprintf(path, sizeof(path), "%s/%s/%s", r->dir, zone, name) >= (int)sizeof(path))
        return false;
    return fs_read_start(path, out, TEXT_MAX);
}

static int64_t read_number(const struct rapl *r, const char *zone, const char *name)
{
    char text[TEXT_MAX];
    return read_file(r, zone, name, text) ? kernel_number(text) : -1;
}

/* Whether the name has so many parts: "intel-rapl:0" has 1, "intel-rapl:0:1" has 2. Not
 * intel-rapl-mmio:0, which repeats the same packages. */
static bool is_zone(const char *name, int parts)
{
    static const char prefix[] = "intel-rapl";
    if (!str_starts(name, prefix) || strlen(name) >= sizeof(((struct rapl_zone *)0)->dir))
        return false;
    const char *p = name + sizeof(prefix) - 1;
    for (; *p == ':' && isdigit((unsigned char)p[1]); parts--)
        for (p++; isdigit((unsigned char)*p);)
            p++;
    return !*p && parts == 0;
}

/* Whether the zone is a package, or the memory of one. Other zones below a package are included in
 * it; psys includes the packages. */
static bool counts(const struct rapl *r, const char *zone)
{
    char name[TEXT_MAX];
    if (is_zone(zone, 1))
        return read_file(r, zone, "name", name) && str_starts(name, "package-");
    return is_zone(zone, 2) && read_file(r, zone, "name", name) && str_starts(name, "dram");
}

void rapl_open(struct rapl *r, const char *dir)
{
    *r = (struct rapl){.dir = dir};
    DIR *d = opendir(dir);
    for (struct dirent *e; d && r->n < RAPL_ZONES_MAX && (e = readdir(d)) != NULL;) {
        if (!counts(r, e->d_name))
            continue;
        struct rapl_zone *z = &r->zones[r->n++];
        STR_COPY(z->dir, e->d_name);
        z->range_uj = read_number(r, z->dir, "max_energy_range_uj");
        z->uj = -1;
    }
    if (d)
        closedir(d);
}

int64_t rapl_used_uj(int64_t before_uj, int64_t now_uj, int64_t range_uj)
{
    if (before_uj < 0 || now_uj < 0)
        return -1;
    if (now_uj >= before_uj)
        return now_uj - before_uj;
    /* the counter wrapped; usable if its range is known */
    return range_uj >= before_uj ? range_uj - before_uj + now_uj : -1;
}

int64_t rapl_sample(struct rapl *r, int64_t now_ms)
{
    int64_t sum = r->n > 0 && now_ms - r->at_ms <= RAPL_GAP_MS ? 0 : -1;
    for (size_t i = 0; i < r->n; i++) {
        struct rapl_zone *z = &r->zones[i];
        int64_t uj = read_number(r, z->dir, "energy_uj"),
                used = rapl_used_uj(z->uj, uj, z->range_uj);
        z->uj = uj;
        sum = sum < 0 || used < 0 || used > INT64_MAX - sum ? -1 : sum + used;
    }
    r->at_ms = now_ms;
    return sum;
}
