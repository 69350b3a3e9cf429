# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# How a machine ends itself; above it stand api, metadata and, where a machine that is switched off still exists at its
# provider, the provider's end_machine(), which has it deleted. That is tried for two minutes, if the machine has the
# right; then, and also while it is being deleted, it is switched off. An emulated one ends with its last process.
# Plain sh. Tokens are in files of mode 600 only.
emulated=${BELAY_NODE_DIR:-}
api=${api%/}
metadata=${BELAY_METADATA:-${metadata:-http://169.254.169.254}}
umask 077

say() { echo "belay: $*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# Not the clock, which may jump.
uptime_s() {
    read -r up rest </proc/uptime
    echo "${up%%.*}"
}

# METHOD URL HEADER. What came is in $work/reply. 0: good; 2: no; else: try again. No proxy, no redirection.
ask() {
    status=000
    printf 'header = "%s"\n' "$3" >"$work/curl"
    printf 'header = %s\n' "$3" >"$work/wget"
    if has curl; then
        status=$(curl -q -g -sS --noproxy '*' -X "$1" -K "$work/curl" --connect-timeout 5 --max-time 20 \
            -o "$work/reply" -w '%{http_code}' "$2") || return 1
    elif has wget && wget --version 2>/dev/null | grep -q 'GNU Wget'; then
        wget -S --config="$work/wget" --no-proxy --method="$1" --max-redirect=0 --tries=1 --timeout=20 \
            -O "$work/reply" "$2" 2>"$work/said" || :
        status=$(sed -n 's|^ *HTTP/[0-9.]* \([0-9]*\).*|\1|p' "$work/said" | head -n 1)
    elif has python3; then
        status=$(ask_by_python "$1" "$2") || return 1
    else
        return 2
    fi
    case $status in
    2??) return 0 ;;
    '' | 000 | 408 | 409 | 429 | 5??) return 1 ;;
    esac
    return 2
}
ask_by_python() {
    python3 - "$work" "$1" "$2" <<'EOF'
import http.client, sys, urllib.parse
work, method, url = sys.argv[1:]
url = urllib.parse.urlsplit(url)
kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
try:
    with open(work + "/wget") as f:
        name, value = f.read().strip().split(" = ", 1)[1].split(": ", 1)
    c = kind(url.hostname, url.port, timeout=20)
    c.request(method, url._replace(scheme="", netloc="").geturl(), headers={name: value})
    r = c.getresponse()
    with open(work + "/reply", "wb") as f:
        f.write(r.read(65536))
    print(r.status)
except (OSError, http.client.HTTPException) as e:
    sys.exit(str(e))
EOF
}

# Of a reply with a token.
token_of_reply() { sed -n 's/.*"access_token" *: *"\([^"]*\)".*/\1/p' "$work/reply"; }

delete_in_time() {
    deadline=$(($(uptime_s) + 120))
    wait_s=1
    while :; do
        code=0
        end_machine || code=$?
        case $code in
        0) say "this machine is being deleted" && return ;;
        2) say "this machine cannot delete itself: HTTP status $status" && return ;;
        esac
        number=$(od -An -N2 -tu2 /dev/urandom | tr -d ' \n')
        pause_s=$((wait_s + ${number:-0} % wait_s))
        [ $(($(uptime_s) + pause_s)) -lt "$deadline" ] || return
        say "this machine is not deleted yet: HTTP status $status; trying again in $pause_s s"
        sleep "$pause_s"
        [ "$wait_s" -ge 16 ] || wait_s=$((wait_s * 2))
    done
}

if has end_machine && work=$(mktemp -d); then
    delete_in_time
    rm -rf "$work"
fi
[ -z "$emulated" ] || exit 0
say "powering off"
shutdown -h now || poweroff || poweroff -f || echo o >/proc/sysrq-trigger
