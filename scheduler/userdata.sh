# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154 # variables that are set by the text above it
#
# What follows is the same for every machine; above it stand server, version, boot_s, token, ca(), configuration(),
# power_off_script(), unit() and accounts().
# Plain sh. The token is in files of mode 600 only, never in an argument, the environment or what is said.
emulated=${BELAY_NODE_DIR:-}
dir=${emulated:-/var/lib/belay-agent}
home=${emulated:+$emulated.opt}
home=${home:-/opt/belay}
work=$dir.boot
read -r booted rest </proc/uptime # the agent reports how long it took from here to its join

say() { echo "belay: $*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# A machine that cannot become a node must not go on costing money.
give_up() {
    trap - EXIT
    say "this machine does not become a node: $*"
    rm -rf "$work"
    sh -c "$(power_off_script)"
    exit 1
}
trap 'give_up "its boot script ended early"' EXIT

# Not the clock, which may jump while a machine boots.
uptime_s() {
    read -r up rest </proc/uptime
    echo "${up%%.*}"
}

# Up to $1 - 1, by chance: the machines of a wave do not all come back at once.
chance() {
    number=$(od -An -N2 -tu2 /dev/urandom | tr -d ' \n')
    echo $((${number:-0} % $1))
}

write_files() {
    rm -rf "$work"
    mkdir -p "$work/nothing"
    ca >"$work/ca.pem"
    { configuration && echo "ca: |" && sed 's/^/  /' "$work/ca.pem"; } >"$work/agent.yaml"
    echo "power_off: \"sh '$dir/power-off'\"" >>"$work/agent.yaml"
    # What only the image's maker can say: system_users, for one.
    [ -n "$emulated" ] || [ ! -f /etc/belay/node.yaml ] || cat /etc/belay/node.yaml >>"$work/agent.yaml"
    power_off_script >"$work/power-off"
    echo "$booted" >"$work/booted"
    cat >"$work/header" <<END
Authorization: Bearer $token
END
    cat >"$work/curl" <<END
header = "Authorization: Bearer $token"
END
    cat >"$work/wget" <<END
header = Authorization: Bearer $token
END
}

# Each takes PATH FILE, trusts the cluster's CA and no other, and gives 0: there it is; 2: refused; else: try again.
# What the image's maker has put into curl's and wget's own files does not count, nor does a proxy.
fetch_by_curl() {
    status=$(curl -q -g -sS -f --noproxy '*' --proto '=https' --cacert "$work/ca.pem" --capath "$work/nothing" \
        -K "$work/curl" --connect-timeout 20 --max-time 300 -o "$2" -w '%{http_code}' "$server$1") && return 0
    case $status in 401 | 404) return 2 ;; esac
    return 1
}
fetch_by_wget() {
    code=0
    SSL_CERT_FILE=$work/ca.pem SSL_CERT_DIR=$work/nothing wget -nv --config="$work/wget" --no-proxy \
        --ca-certificate="$work/ca.pem" --ca-directory="$work/nothing" --max-redirect=0 --tries=1 --timeout=60 \
        -O "$2" "$server$1" || code=$?
    case $code in 0) return 0 ;; 6) return 2 ;; esac
    return 1
}
fetch_by_python() {
    python3 - "$work" "$server$1" "$2" <<'END'
import http.client, shutil, ssl, sys, urllib.parse
work, url, path = sys.argv[1:]
url = urllib.parse.urlsplit(url)
try:
    trust = ssl.create_default_context(cafile=work + "/ca.pem")
    c = http.client.HTTPSConnection(url.hostname, url.port or 443, timeout=60, context=trust)
    with open(work + "/header") as f:
        name, value = f.read().strip().split(": ", 1)
    c.request("GET", url.path + "?" + url.query, headers={name: value})
    r = c.getresponse()
    if r.status != 200:
        print("HTTP status %d" % r.status, file=sys.stderr)
        sys.exit(2 if r.status in (401, 404) else 1)
    with open(path, "wb") as f:
        shutil.copyfileobj(r, f)
except (OSError, http.client.HTTPException) as e:
    sys.exit(str(e))
END
}
fetch() {
    if has curl; then
        fetch_by_curl "$@"
    elif has wget && wget --version 2>/dev/null | grep -q 'GNU Wget'; then # busybox's verifies nothing
        fetch_by_wget "$@"
    elif has python3; then
        fetch_by_python "$@"
    else
        give_up "there is neither curl nor GNU wget nor python3 to fetch the agent with"
    fi
}

sha256() {
    if has sha256sum; then
        sha256sum <"$1"
    elif has openssl; then
        openssl dgst -sha256 -r <"$1"
    else
        python3 -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())' <"$1"
    fi | cut -c1-64
}

# Jobs' users need to read it. Whole or not at all.
unpack() (
    umask 022
    part=$home/.$version.$$
    mkdir -p "$part" && gzip -dc "$work/bundle" | tar -xpf - -C "$part" && sh "$part/relocate" "$home/$version" &&
        rm -rf "${home:?}/$version" && mv "$part" "$home/$version" && exit 0
    rm -rf "$part"
    exit 1
)

get_agent() {
    fetch "/agent/v1/bundle/sha256?arch=$arch" "$work/sha256" || return
    fetch "/agent/v1/bundle?arch=$arch" "$work/bundle" || return
    read -r expected <"$work/sha256" || return 1
    found=$(sha256 "$work/bundle")
    if [ "$found" != "$expected" ]; then
        say "what came is not belayd's bundle: its SHA-256 is $found, not $expected"
        return 1
    fi
    unpack || return 1
    ! has restorecon || restorecon -R "$home" || :
}

get_agent_in_time() {
    deadline=$(($(uptime_s) + boot_s))
    wait_s=1
    while :; do
        code=0
        get_agent || code=$?
        case $code in
        0) return 0 ;;
        2) give_up "belayd at $server does not give its agent to it: the token was used already, or there is none for $arch" ;;
        esac
        pause_s=$((wait_s + $(chance "$wait_s")))
        [ $(($(uptime_s) + pause_s)) -lt "$deadline" ] || give_up "no agent from $server within $boot_s s"
        say "no agent yet; trying again in $pause_s s"
        sleep "$pause_s"
        [ "$wait_s" -ge 32 ] || wait_s=$((wait_s * 2))
    done
}

is_ours() { [ "$("$1" --version 2>/dev/null)" = "belay-agent $version" ]; }

# The image's, if it is of belayd's version; else belayd's.
find_agent() {
    agent=$(command -v belay-agent || :)
    [ -z "$agent" ] || ! is_ours "$agent" || return 0
    agent=$home/$version/bin/belay-agent
    ! is_ours "$agent" || return 0
    case $(uname -m) in
    x86_64 | amd64) arch=x86_64 ;;
    aarch64 | arm64) arch=aarch64 ;;
    *) give_up "there is no agent for $(uname -m)" ;;
    esac
    get_agent_in_time
    is_ours "$agent" || give_up "the agent that came does not run on it: $("$agent" --version 2>&1 | head -n 3)"
}

# The accounts that jobs run as here. One that the image has with another number is somebody else's, and may own files
# that are not the user's.
create_account() {
    if has useradd; then
        groupadd -g "$2" "$1" && useradd -m -g "$2" -u "$2" -s /bin/sh "$1"
    elif has adduser; then # busybox's
        adduser -D -u "$2" -s /bin/sh "$1"
    else
        say "there is neither useradd nor adduser"
        return 1
    fi
}
create_accounts() {
    [ -z "$emulated" ] || return 0 # it runs on its owner's machine
    accounts >"$work/accounts"
    while read -r account uid; do
        found=$(id -u "$account" 2>/dev/null || :)
        [ "$found" != "$uid" ] || continue
        [ -z "$found" ] || give_up "the account $account has the number $found in the image, and create_accounts says $uid"
        create_account "$account" "$uid" >&2 </dev/null || give_up "the account $account ($uid) cannot be created"
    done <"$work/accounts"
}

# An image that was made from a node has that node's keys and tasks: they go. After a reboot everything is as it was.
configure() {
    if [ -e "$dir/agent.yaml" ] && [ "$(cat "$dir/agent.yaml")" != "$(cat "$work/agent.yaml")" ]; then
        rm -rf "$dir"
    fi
    mkdir -p "$dir"
    mv "$work/power-off" "$dir/power-off"
    mv "$work/booted" "$dir/booted"
    mv "$work/agent.yaml" "$dir/agent.yaml"
    rm -rf "$work"
}

# An agent that is killed or replaced is started again and takes its tasks over; one that ends by itself (0: told to;
# 3: the cluster does not want it any more) is not. Its tasks are below it and stay when it ends.
start_by_systemd() {
    [ -d /run/systemd/system ] || return
    unit | sed "s|@AGENT@|$agent|; s|@CONFIG@|$dir/agent.yaml|" >/etc/systemd/system/belay-agent.service || return
    systemctl daemon-reload && systemctl enable belay-agent && systemctl start --no-block belay-agent
}
# SIGTERM is the agent's, which ends when it has finished what a shutdown wants (a signal ends a wait early).
# shellcheck disable=SC2016 # the inner shell expands these
keep_it_running='
agent=
ending=
trap "ending=yes; kill -TERM \$agent 2>/dev/null || :" TERM
while [ -z "$ending" ]; do
    "$0" --config "$1" </dev/null &
    agent=$!
    [ -z "$ending" ] || kill -TERM $agent
    code=0
    wait $agent || code=$?
    while kill -0 $agent 2>/dev/null; do
        code=0
        wait $agent || code=$?
    done
    case $code in 0 | 3) exit 0 ;; esac
    [ -n "$ending" ] || sleep 1
done'
start() {
    trap - EXIT
    [ -z "$emulated" ] || exec sh -c "$keep_it_running" "$agent" "$dir/agent.yaml"
    ! start_by_systemd || exit 0
    setsid sh -c "$keep_it_running" "$agent" "$dir/agent.yaml" </dev/null >>/var/log/belay-agent.log 2>&1 &
    exit 0
}

write_files
create_accounts
find_agent
configure
say "starting $agent"
start
