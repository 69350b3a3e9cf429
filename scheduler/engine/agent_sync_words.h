/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion between the enums of the wire and those of the core. Each pair has the same values on
 * both sides; values that only the wire has (none, or an unknown word) become the core's "none".
 */
#ifndef BELAY_SCHEDULER_ENGINE_AGENT_SYNC_WORDS_H
#define BELAY_SCHEDULER_ENGINE_AGENT_SYNC_WORDS_H

#include "base/wire/wire.h"
#include "job/spec.h"
#include "scheduler/core/model/types.h"

enum wire_method agent_sync_method(enum ckpt_method method);
enum wire_end agent_sync_reason(enum end_kind end);
enum end_kind agent_sync_end(enum wire_end end);                /* else END_NONE */
enum notice_type agent_sync_notice(enum wire_notice_kind kind); /* else NOTICE_TYPE_NONE */
enum criu_ability agent_sync_criu_ability(enum wire_criu can);  /* else CRIU_UNKNOWN */

#endif
