/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's route for racks: the limit and the draw of each.
 */
#include "scheduler/api/api_private.h"

static json_t *rack_json(const struct rack_view *v)
{
    return json_pack("{s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "name", json_text(v->options->name),
        "max_watts", (json_int_t)v->options->max_w, "idle_watts", (json_int_t)v->idle_w, "watts",
        (json_int_t)(v->draw_w + v->measured_w), "measured_watts", (json_int_t)v->measured_w,
        "nodes", (json_int_t)v->nodes, "joined", (json_int_t)v->joined, "pue",
        v->options->pue_micro > 0 ? json_real((double)v->options->pue_micro / 1e6) : json_null());
}

static void reply_racks(const struct api *api, struct http_exchange *x, const struct caller *viewer,
    const struct model *m, int64_t arg)
{
    (void)viewer;
    json_t *rows = json_array();
    (void)api, (void)arg;
    for (size_t k = 0; k < core_racks(m); k++) {
        struct rack_view v;
        core_rack(m, k, &v);
        json_array_append_new(rows, rack_json(&v));
    }
    api_reply_json(x, 200, json_pack("{s:o}", "racks", rows));
}

void api_racks_list(struct request *q)
{
    api_read_model(q, reply_racks, 0);
}
