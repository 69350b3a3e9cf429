/* SPDX-License-Identifier: Apache-2.0
 *
 * See http_date.h. The format has a fixed width, so it is converted to ISO 8601 and parsed as that.
 */
#include "base/http_date.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

int http_date_parse(const char *text, struct wall *ret_wall, struct err *e)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char name[4] = "", iso[TIME_ISO_MAX];
    if (!text || strlen(text) != strlen("Sat, 22 Aug 2026 12:00:00 GMT") ||
        !str_ends(text, " GMT") || memcmp(text + 3, ", ", 2) != 0)
        return err_set(e, ERR_INVALID, "expected a date like \"Sat, 22 Aug 2026 12:00:00 GMT\"");
    memcpy(name, text + 8, 3);
    const char *month = strstr(months, name);
    if (!month || (month - months) % 3 != 0)
        return err_set(e, ERR_INVALID, "unknown month \"%s\"", name);
    snprintf(iso, sizeof(iso), "%.4s-%02d-%.2sT%.8sZ", text + 12, (int)(month - months) / 3 + 1,
        text + 5, text + 17);
    return time_parse_iso(iso, ret_wall, e);
}

void http_date_write(struct wall at, char out[HTTP_DATE_MAX])
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const time_t seconds = (time_t)(at.ms / 1000);
    struct tm t = {0};
    gmtime_r(&seconds, &t);
    snprintf(out, HTTP_DATE_MAX, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
        days + 3 * (t.tm_wday % 7), t.tm_mday % 100, months + 3 * (t.tm_mon % 12),
        (t.tm_year + 1900) % 10000, t.tm_hour % 100, t.tm_min % 100, t.tm_sec % 100);
}
