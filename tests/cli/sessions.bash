# What the tests of sessions share: a state directory of the test's own, and locks held from outside.
# shellcheck shell=bash disable=SC2154,SC2034

# own_state: from here on agentbox keeps its state below $top/state; $sessions is where the sessions are.
own_state() {
	mkdir -p "$top/state" "$top/home"
	export HOME=$top/home XDG_STATE_HOME=$top/state
	sessions=$top/state/agentbox/sessions
	if [ "$(id -u)" = 0 ]; then
		printf '#!/bin/sh\nexec unshare -m sh -c '\''mount --bind "$0" /var/lib && exec "$@"'\'' %q %q "$@"\n' \
			"$top/state" "$AGENTBOX" >"$top/agentbox"
		chmod 755 "$top/agentbox"
		AGENTBOX=$top/agentbox
	fi
}

# hold NAME shared|exclusive: have a session's lock, as an exec or a writer has it, until let_go.
hold() {
	"$python" - "$sessions/$1/lock" "$2" "$top/held" <<-'END' &
		import fcntl, os, struct, sys, time
		fd = os.open(sys.argv[1], os.O_RDWR)
		kind = fcntl.F_RDLCK if sys.argv[2] == "shared" else fcntl.F_WRLCK
		fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", kind, 0, 0, 0, 0))  # F_OFD_SETLK
		open(sys.argv[3], "w").close()
		time.sleep(60)
		END
	holder=$!
	until_there "$top/held"
	rm "$top/held"
}

let_go() {
	kill -KILL "$holder"
	wait "$holder" 2>/dev/null || true
}
