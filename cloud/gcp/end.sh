# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154 # variables that are set by the text above it
#
# An instance that is switched off stays, and its disk is billed. This one deletes itself, if it has a service account
# that may; see docs/how-to/clouds/gcp.md.
end_machine() {
    at=$metadata/computeMetadata/v1
    flavor='Metadata-Flavor: Google'
    ask GET "$at/project/project-id" "$flavor" || return
    url=${api:-https://compute.googleapis.com}/compute/v1/projects/$(cat "$work/reply")
    ask GET "$at/instance/zone" "$flavor" || return
    url=$url/zones/$(sed 's|.*/||' "$work/reply")
    ask GET "$at/instance/name" "$flavor" || return
    url=$url/instances/$(cat "$work/reply")
    ask GET "$at/instance/service-accounts/default/token" "$flavor" || return
    ask DELETE "$url" "Authorization: Bearer $(token_of_reply)"
}
