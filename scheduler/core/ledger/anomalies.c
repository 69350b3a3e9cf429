/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/ledger/anomalies.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define KEY_MAX (CORE_NAME_MAX + 8)

static void key_of(enum spend_of of, const char *subject, char key[KEY_MAX])
{
    text_format(key, KEY_MAX, "%s %s", spend_of_names[of], subject);
}

static struct anomaly_row *find(const struct model *m, enum spend_of of, const char *subject)
{
    char key[KEY_MAX];
    key_of(of, subject, key);
    return smap_get(&m->ledger.anomalies, key);
}

bool core_anomaly_is_told(
    const struct model *m, enum spend_of of, const char *subject, struct wall day)
{
    const struct anomaly_row *r = find(m, of, subject);
    return r && r->day.ms >= day.ms;
}

static bool is_valid(const struct anomaly_row *r)
{
    return r->of > SPEND_OF_NONE && r->of < SPEND_OFS && r->subject[0] && r->day.ms >= 0 &&
           r->day.ms % DAY_MS == 0 && r->uusd >= 0 && r->usual_uusd >= 0 && r->weeks > 0 &&
           r->weeks <= ANOMALY_WEEKS_MAX;
}

static void keep(struct model *m, const struct anomaly_row *r)
{
    char key[KEY_MAX];
    key_of(r->of, r->subject, key);
    smap_put(&m->ledger.anomalies, key, mem_dup(r, sizeof *r));
}

/* ---- texts ---- */

static const char *weekday_of(struct wall day)
{
    static const char *const names[] = {
        "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"};
    return names[day.ms / DAY_MS % 7]; /* 1970 began on a Thursday */
}

void core_anomaly_text(const struct anomaly_row *a, char text[ANOMALY_TEXT_MAX])
{
    char day[TIME_ISO_MAX];
    time_format_iso(a->day, day);
    text_format(text, ANOMALY_TEXT_MAX,
        "%s %s spent $%.2f on %s %.10s UTC: usual is $%.2f (the median of %d %ss)",
        spend_of_names[a->of], a->subject, (double)a->uusd / 1e6, weekday_of(a->day), day,
        (double)a->usual_uusd / 1e6, (int)a->weeks, weekday_of(a->day));
}

/* ---- the event ---- */

int apply_anomaly(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct anomaly_row *a = &ev->anomaly;
    char text[ANOMALY_TEXT_MAX];
    if (!is_valid(a) || a->day.ms > ev->now.wall.ms)
        return err_set(e, ERR_INVALID, "this is no anomaly of a day's spending");
    struct anomaly_row *told = find(m, a->of, a->subject);
    if ((told && told->day.ms >= a->day.ms) ||
        a->day.ms + ANOMALY_DAYS_BACK * DAY_MS < ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT, "it was notified, or the day is too long ago");
    if (!told && smap_size(&m->ledger.anomalies) >= ANOMALIES_MAX)
        return err_set(e, ERR_CONFLICT,
            "anomalies of %d subjects are remembered, which is the "
            "maximum",
            ANOMALIES_MAX);
    if (told)
        *told = *a;
    else
        keep(m, a);
    *ADD_ROW(m, anomalies) = *a;
    core_anomaly_text(a, text);
    history(m, ev->now, "spend-anomaly", (struct history_of){.a = a->uusd, .b = a->usual_uusd},
        "%s", text);
    notify_anomaly(m, a, ev->now);
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}

/* ---- load, destroy ---- */

int model_load_anomaly(struct model *m, const struct anomaly_row *r, struct err *e)
{
    if (!is_valid(r) || find(m, r->of, r->subject))
        return err_set(
            e, ERR_CORRUPT, "the stored anomaly of %s is not valid, or comes twice", r->subject);
    keep(m, r);
    return 0;
}

void anomalies_destroy_all(struct model *m)
{
    const char *key;
    void *r;
    for (size_t pos = 0; (r = smap_next(&m->ledger.anomalies, &pos, &key)) != NULL;)
        free(r);
    smap_deinit(&m->ledger.anomalies);
}
