# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Fetches a job's image, then runs the job's script in it (agent/supervisor/image.h).
#   image.sh podman|apptainer|file RUNTIME IMAGE CONTROL-DIRECTORY COMMAND...
kind=$1 runtime=$2 image=$3 control=$4
shift 4
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
unset LD_PRELOAD LD_LIBRARY_PATH

# give_up bad|node REASON: bad = the image is at fault, so another node would fail too.
give_up() {
	printf '%s the image %s is not available: %s\n' "$1" "$image" "$2" | tr '\n' ' ' >"$control/.image"
	echo "belay: the image $image is not available: $2" >&2
	exit 125
}

fetch() {
	case $kind in
	podman) "$runtime" image exists "$image" 2>/dev/null || "$runtime" pull -q "$image" >/dev/null ;;
	apptainer)
		case $image in *://*) from=$image ;; *) from=docker://$image ;; esac
		"$runtime" pull --force "$control/image.sif" "$from" >/dev/null ;;
	file) [ -r "$image" ] || give_up bad 'there is no such file that this user may read on the node' ;;
	esac
}

try=1
while ! fetch 2>"$control/.pull"; do
	why=$(tail -n 1 "$control/.pull")
	case $why in
	*"manifest unknown"* | *"name unknown"* | *"not found"* | *"nauthorized"* | *"denied"* | *"invalid reference"* | *"no image found"* | *"does not resolve"* | *"did not resolve"*)
		give_up bad "${why:-no reason was given}" ;;
	esac
	[ $try -lt 3 ] || give_up node "${why:-no reason was given} (after $try tries)"
	sleep $((try * try))
	try=$((try + 1))
done
exec "$@"
