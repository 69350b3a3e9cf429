/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies of webhooks in the forms that chat and paging services take. Pure. Texts of users (names,
 * reasons) are never interpreted there as markup, mentions or links, and everything is cut to the
 * services' limits at a character, never within one. Sources:
 *
 *  slack      incoming webhooks: docs.slack.dev/messaging/sending-messages-using-incoming-webhooks;
 *             `text` for notices, blocks (docs.slack.dev/reference/block-kit): a header has at most
 *             150 characters, a section 3000, a message 50 blocks, and about 13,000 characters
 *             (github.com/slackapi/bolt-js/issues/2509). &, < and > are escaped
 *  teams      webhooks of Workflows, "When a Teams webhook request is received": a message whose
 *             attachment is an Adaptive Card 1.4 (adaptivecards.io/explorer), at most 28 KB
 *             (learn.microsoft.com/connectors/teams). The connectors of Office 365 are retired, and
 *             so are their cards. Texts are TextRuns, which are not Markdown
 *  pagerduty  Events API v2: github.com/PagerDuty/developer-docs, docs/events-API-v2: routing_key
 *             (32 characters), event_action, dedup_key (at most 255), payload with summary (at most
 *             1024), source, severity
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFY_CHAT_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFY_CHAT_H

#include "scheduler/config/notify.h"
#include "scheduler/notify/notify_text.h"

/* Writes the body of the format, which is not NOTIFY_JSON. routing_key is for NOTIFY_PAGERDUTY.
 * Returns false, and writes nothing, if the service has nothing to do with it: PagerDuty gets
 * what is wrong (trigger) and the success that ends it (resolve), with the same dedup_key: that of
 * the cron entry, else of the job, the node, the budget or the pool. */
bool notify_chat_body(const struct notify_facts *f, enum notify_format format,
    const char *routing_key, struct buf *out);

#endif
