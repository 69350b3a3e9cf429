/* SPDX-License-Identifier: Apache-2.0
 *
 * The providers that belay knows, and what a pool's file may say to each. The configuration is read
 * by these tables, so that a provider is one entry here and one folder.
 */
#ifndef BELAY_CLOUD_PROVIDER_H
#define BELAY_CLOUD_PROVIDER_H

#include "base/runner.h"
#include "cloud/driver.h"

#define CLOUD_SETTINGS_MAX 16

enum cloud_setting_kind {
    CLOUD_SETTING_TEXT, /* one line */
    CLOUD_SETTING_LIST  /* a sequence of words; its value is their lines */
};

/* What a pool of the provider can ask for; with it, which keys its file has. */
enum cloud_offers {
    CLOUD_OFFERS_ZONES, /* zones x types x markets */
    /* types, on-demand: the region is the smallest place, and stands for the zone */
    CLOUD_OFFERS_REGION,
    /* one, of owned machines that the pool's file describes, as many as its setting "hosts" has;
     * its region, zone and type are the provider's name */
    CLOUD_OFFERS_HOSTS
};

/* One key of a pool of this provider. */
struct cloud_setting {
    const char *key;
    enum cloud_setting_kind kind;
    size_t max;         /* bytes of a text, words of a list */
    const char *needed; /* what it is, for the error when it is missing; NULL: it may be */
    /* Its instances are looked for there: it stays as it is while the pool has any. Each word of a
     * list is a place of its own, which stays while an instance is at it: see is_at. */
    bool is_place;
};

/* What a pool says to its driver. Borrowed for the creation; drivers copy what they keep. */
struct cloud_setup {
    const struct cloud_provider *provider;
    /* by the provider's table; NULL: absent. Read with cloud_setup_get */
    const char *values[CLOUD_SETTINGS_MAX];
    const char *region;
    const char *endpoint;     /* of the API; NULL: the real one */
    const char *credentials;  /* a file; NULL: the provider's usual order */
    const char *metadata;     /* the metadata service as this process sees it; NULL: the real one */
    int64_t disk_gib;         /* 0: the image's own */
    struct http_client *http; /* outlives the driver, like timers */
    struct timers *timers;
    struct runner *runner; /* as http */
};

struct cloud_provider {
    const char *name; /* "aws" */
    enum cloud_offers offers;
    const struct cloud_setting *settings; /* ends with a zeroed one */
    /* its launches can be answered from several offers: cloud_launch.alternatives */
    bool has_fleets;
    int64_t paid_minimum_ms; /* an instance is billed for so long at least */
    /* Plain sh, defines end_machine(), by which an instance has itself deleted
     * (scheduler/power_off.sh says what it can use); NULL: one that is switched off is gone. */
    const char *end_script;
    int (*create)(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e);
    /* Whether an instance of this id is looked for at this word of a list that is_place. NULL:
     * there is no such list. */
    bool (*is_at)(const char *word, const char *id);
};

/* NULL: there is none of that name. */
const struct cloud_provider *cloud_provider_find(const char *name);

/* All names, NULL-terminated, for error texts; static. */
extern const char *const cloud_provider_names[];

/* The value of a key of the provider's table (asserted), NULL if absent. */
const char *cloud_setup_get(const struct cloud_setup *s, const char *key);

#endif
