# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154 # variables that are set by the text above it
#
# A machine that is switched off stays, and is billed. This one deletes itself, and with it its disk and interface, if it
# has a managed identity that may; see docs/how-to/clouds/azure.md.
end_machine() {
    at=$metadata/metadata
    case $api in
    https://*) audience=$api/ ;;
    *) audience=https://management.azure.com/ ;;
    esac
    ask GET "$at/instance/compute/resourceId?api-version=2021-02-01&format=text" 'Metadata: true' || return
    url=${api:-https://management.azure.com}$(cat "$work/reply")
    ask GET "$at/identity/oauth2/token?api-version=2018-02-01&resource=$audience" 'Metadata: true' || return
    ask DELETE "$url?api-version=2022-08-01" "Authorization: Bearer $(token_of_reply)"
}
