/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of providers and of the settings that a pool file may contain for each. The
 * configuration is read by these tables, so that a provider is one entry here and one folder.
 */
#ifndef BELAY_CLOUD_PROVIDER_H
#define BELAY_CLOUD_PROVIDER_H

#include "base/runner.h"
#include "cloud/driver.h"

#define CLOUD_SETTINGS_MAX 16

enum cloud_setting_kind {
    CLOUD_SETTING_TEXT, /* one line */
    CLOUD_SETTING_LIST  /* a sequence of words; its value is one word per line */
};

/* The offers of a pool of this provider; determines the keys of its file. */
enum cloud_offers {
    CLOUD_OFFERS_ZONES, /* zones x types x markets */
    /* types, on-demand only: the region is the smallest place and is also used as the zone */
    CLOUD_OFFERS_REGION,
    /* one offer of the owned machines that the pool file lists in its setting "hosts"; its region,
     * zone and type are the provider's name */
    CLOUD_OFFERS_HOSTS
};

/* One key of a pool of this provider. */
struct cloud_setting {
    const char *key;
    enum cloud_setting_kind kind;
    size_t max;         /* bytes of a text, words of a list */
    const char *needed; /* what it is, for the error when it is missing; NULL if optional */
    /* Determines where the pool's instances are listed, so it cannot change while the pool has any.
     * In a list each word is a location, which must stay while an instance is there: see is_at. */
    bool is_location;
};

/* A pool's settings for its driver. Borrowed during creation; drivers copy what they keep. */
struct cloud_setup {
    const struct cloud_provider *provider;
    /* indexed by the provider's table; NULL if absent. Read with cloud_setup_get */
    const char *values[CLOUD_SETTINGS_MAX];
    const char *region;
    const char *endpoint;     /* of the API; NULL for the real one */
    const char *credentials;  /* path of a file; NULL for the provider's usual lookup */
    const char *metadata;     /* URL of the metadata service; NULL for the real one */
    int64_t disk_gib;         /* 0 = the image's own size */
    struct http_client *http; /* outlives the driver, like timers */
    struct timers *timers;
    struct runner *runner; /* outlives the driver */
};

struct cloud_provider {
    const char *name; /* "aws" */
    enum cloud_offers offers;
    const struct cloud_setting *settings; /* ends with a zeroed entry */
    /* one launch can be filled from several offers: cloud_launch.alternatives */
    bool has_fleets;
    int64_t paid_minimum_ms; /* minimum billed time of an instance */
    /* Plain sh that defines end_machine(), by which an instance deletes itself
     * (scheduler/power_off.sh says what it can use); NULL if a machine that is switched off ceases
     * to exist. */
    const char *end_script;
    int (*create)(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e);
    /* Whether an instance of this id belongs to this word of an is_location list. NULL if the
     * provider has no such list. */
    bool (*is_at)(const char *word, const char *id);
};

/* NULL if unknown. */
const struct cloud_provider *cloud_provider_find(const char *name);

/* All names, NULL-terminated, for error texts; static. */
extern const char *const cloud_provider_names[];

/* The value of a key of the provider's table (asserted), NULL if absent. */
const char *cloud_setup_get(const struct cloud_setup *s, const char *key);

#endif
