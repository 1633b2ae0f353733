# Ports of servers inside of a box, reached from the host: who gets there, by which port, and what becomes of it.
load helpers
load sessions

published=$BATS_TEST_DIRNAME/published.py

# ask, knock, many ...: the clients of published.py
client() {
	"$python" -I -S "$published" "$@"
}

# served ARGS... -- COMMAND...: runs in the background, once its ports are told: $ports has a line for each,
# $host_port is the first one's.
served() {
	cp "$published" "$work/published.py"
	mkfifo "$top/ports"
	"$AGENTBOX" run --ports-fd 3 "$@" >"$result" 2>"$words" 3>"$top/ports" &
	runner=$!
	ports=$(cat "$top/ports")
	rm "$top/ports"
	host_port=$(jq -s '.[0].host_port' <<<"$ports")
	[ "$host_port" != null ] || { wait "$runner" || cat "$words" "$result" >&2; fail "no port was told"; }
}

# serve [ADDRESS]: the server of published.py under the test's policy; it runs until it is told to quit.
serve() {
	served -p "$policy" --wall 120s -- python3 -I -S published.py serve 8080 "$@"
}

over() {
	code=0
	wait "$runner" || code=$?
	keep_result "$result"
}

quit() {
	[ "$(client ask "$host_port" quit)" = bye ]
	over
	want_exit 0
}

publishes() {
	policy_is <<<"network: {publish: [$1]${2:+, allow: [$2]}}"
}

@test "a free port of the host leads to the server inside, which sees its own loopback" {
	publishes 8080
	serve
	[ "$(jq -s length <<<"$ports")" = 1 ]
	[ "$(jq .port <<<"$ports")" = 8080 ]
	[ "$host_port" -gt 1023 ]
	[ "$(client ask "$host_port" peer)" = "127.0.0.1 127.0.0.1" ]
	quit
	want ".published | length == 1 and .[0].port == 8080 and .[0].host_port == $host_port" \
		'.published[0].connections == 2 and .published[0].sent_bytes == 24 and .published[0].received_bytes == 10' \
		'.network == [] and .violations == [] and .warnings == []' \
		'.enforcement.net_ns and .enforcement.network == "none"'
	[ "$(client knock "$host_port")" = refused ]
}

@test "a file comes through as an ordinary client and server have it" {
	needs curl
	publishes 8080
	echo content >file
	served -p "$policy" --wall 120s -- python3 -m http.server 8080
	curl -sS --retry 50 --retry-all-errors --retry-delay 1 -o "$top/got" "http://127.0.0.1:$host_port/file"
	[ "$(cat "$top/got")" = content ]
	kill -TERM "$runner"
	over
	want '.status == "cancelled"' '.published[0].connections >= 1'
}

@test "a given port is the one, and at once again in the next run" {
	local port _
	port=$(client free)
	publishes "\"$port:8080\""
	for _ in 1 2; do
		serve
		[ "$host_port" = "$port" ]
		[ "$(client ask "$port" peer)" = "127.0.0.1 127.0.0.1" ]
		quit
	done
}

@test "a port that is taken is an error that names it, before anything ran" {
	local port
	publishes 8080
	serve
	port=$host_port
	publishes "8080, \"$port:8081\""
	"$AGENTBOX" run -p "$policy" -- touch mark >"$top/second" 2>"$words" || code=$?
	[ "$code" = 125 ]
	keep_result "$top/second"
	jq -e ".error.code == \"network_failed\" and (.error.message | contains(\"port $port of the host\"))
		and (.error.hint | contains(\"publish: [8081]\")) and .published == []" "$top/second"
	[ ! -e mark ]
	quit
}

@test "nobody else can listen at the port while it leads to the box" {
	publishes 8080
	serve
	[ "$(client ask "$host_port" peer)" = "127.0.0.1 127.0.0.1" ]
	client steal "$host_port" >"$top/stolen"
	[ ! -s "$top/stolen" ] || fail "$(cat "$top/stolen")"
	quit
}

@test "before the server listens a connection is reset, and counted; then it is taken" {
	policy_is <<<$'network: {publish: [8080]}\nfilesystem: {workspace: write}'
	served -p "$policy" --wall 120s -- sh -c 'touch up; while ! test -e go; do sleep 0.05; done; exec python3 -I -S published.py serve 8080'
	until_there up
	[ "$(client knock "$host_port")" = reset ]
	[ "$(client knock "$host_port")" = reset ]
	touch go
	[ "$(client ask "$host_port" peer)" = "127.0.0.1 127.0.0.1" ]
	quit
	want '.published[0].unanswered >= 2 and .published[0].connections == 2'
}

@test "a server that listens on ::1 alone is found" {
	[ -e /proc/net/if_inet6 ] || skip "this machine lacks: IPv6"
	publishes 8080
	serve ::1
	[ "$(client ask "$host_port" peer)" = "::1 ::1" ]
	quit
}

@test "each of several ports leads to its own" {
	publishes '8080, 8081'
	served -p "$policy" --wall 120s -- sh -c 'python3 -I -S published.py serve 8081 & exec python3 -I -S published.py serve 8080'
	[ "$(jq -sc 'map(.port)' <<<"$ports")" = '[8080,8081]' ]
	[ "$(client ask "$(jq -s '.[1].host_port' <<<"$ports")" peer)" = "127.0.0.1 127.0.0.1" ]
	quit
	want '.published | map(.connections) == [1, 1]'
}

@test "fifty connections at once, and as many again" {
	publishes 8080
	serve
	client ask "$host_port" peer
	[ "$(client many "$host_port" 50)" = "50 50" ]
	[ "$(client many "$host_port" 200)" = "200 200" ]
	quit
	want '.published[0].connections == 252 and .published[0].unanswered == 0'
}

@test "much data passes unchanged both ways, with an end on one side first" {
	local size=100000000
	publishes 8080
	serve
	client ask "$host_port" peer
	client upload "$host_port" $size >"$top/up"
	client download "$host_port" $size >"$top/down"
	[ "$(sort -u "$top/up" "$top/down" | wc -l)" = 1 ] || fail "$(cat "$top/up" "$top/down")"
	[ "$(wc -l <"$top/up")" = 2 ] && [ "$(wc -l <"$top/down")" = 2 ]
	quit
	want ".published[0].sent_bytes > $size and .published[0].received_bytes > $size"
}

@test "clients that come and go by the thousand harm neither the box nor the next one" {
	publishes 8080
	serve
	client ask "$host_port" peer
	client flood "$host_port" 3000
	[ "$(client ask "$host_port" peer)" = "127.0.0.1 127.0.0.1" ]
	quit
	want '.warnings == []'
}

@test "the box ends: its connections do too, and the port is free" {
	publishes 8080
	serve
	client ask "$host_port" peer
	client hold "$host_port" "$top/held" >"$top/end" &
	local holder=$!
	until_there "$top/held"
	kill -TERM "$runner"
	over
	want '.status == "cancelled"'
	wait "$holder"
	[[ $(cat "$top/end") == @(reset|ended) ]] || fail "$(cat "$top/end")"
	[ "$(client knock "$host_port")" = refused ]
}

@test "the gateway is killed: the port leads nowhere, the command goes on, and the result says so" {
	local pid gateway=''
	policy_is <<<$'network: {publish: [8080]}\nfilesystem: {workspace: write}'
	served -p "$policy" --wall 120s -- sh -c 'python3 -I -S published.py serve 8080 & while ! test -e go; do sleep 0.05; done; echo still'
	client ask "$host_port" peer
	client hold "$host_port" "$top/held" >"$top/end" &
	local holder=$!
	until_there "$top/held"
	for pid in $(pgrep -P "$runner"); do
		[ "$(awk '/^NSpid/ {print NF}' "/proc/$pid/status")" = 2 ] && gateway=$pid
	done
	kill -KILL "$gateway"
	wait "$holder"
	[[ $(cat "$top/end") == @(reset|ended) ]] || fail "$(cat "$top/end")"
	[ "$(client knock "$host_port")" = refused ]
	touch go
	over
	want_exit 0
	want '.stdout | contains("still")' '[.warnings[].code] == ["gateway_ended"]'
}

@test "with published ports alone nothing is reached from inside, no name either" {
	publishes 8080
	box -- sh -c 'cat /etc/resolv.conf; cat /proc/net/route; python3 -c "
import socket
for family, to in (socket.AF_INET, (\"192.0.2.1\", 80)), (socket.AF_INET, (\"198.18.0.1\", 80)), (socket.AF_INET, (\"127.0.0.1\", 53)):
    try:
        socket.socket(family).connect(to)
        print(\"reached\", to)
    except OSError as e:
        print(e.strerror)
try:
    socket.getaddrinfo(\"a.test\", 80)
    print(\"found\")
except OSError:
    print(\"no name\")
"'
	want_exit 0
	want '.stdout | contains("# this box has no network") and contains("no name") and (contains("reached") or contains("found") | not)' \
		'.stdout | contains("Network is unreachable")' '.published[0].connections == 0'
}

@test "an allow-list and published ports go together, but for ports that both need" {
	needs landlock
	publishes 8080 a.test
	serve
	[ "$(client ask "$host_port" peer)" = "127.0.0.1 127.0.0.1" ]
	quit
	want '.enforcement.network == "allow" and .network == []' '.published[0].connections == 2'
	publishes 8080 a.test:8080
	box -- touch mark
	want_error policy_invalid
	want '.error.message | contains("port 8080 cannot be published")' '.error.line == 2'
	want_hint
	[ ! -e mark ]
}

@test "a run in a session has its ports, and the next run again" {
	local _
	own_state
	publishes 8080
	cp "$published" published.py
	"$AGENTBOX" session new -p "$policy" web
	for _ in 1 2; do
		served --session web --wall 120s -- python3 -I -S published.py serve 8080
		[ "$(client ask "$host_port" peer)" = "127.0.0.1 127.0.0.1" ]
		quit
	done
}

@test "--tty: a server with a terminal is reached as well" {
	needs pty
	publishes 8080
	cp "$published" published.py
	mkfifo "$top/ports"
	on_terminal "'$AGENTBOX' run -p '$policy' --tty --result '$result' --ports-fd 4 -- python3 -I -S published.py serve 8080 4>'$top/ports'" &
	runner=$!
	# Not to its end: the terminal's shell has it open as well.
	read -r ports <"$top/ports"
	host_port=$(jq .host_port <<<"$ports")
	[ "$(client ask "$host_port" peer)" = "127.0.0.1 127.0.0.1" ] || fail "$(cat "$top/terminal" "$result")"
	[ "$(client ask "$host_port" quit)" = bye ]
	wait "$runner"
	keep_result "$result"
	want '.status == "exited" and .exit_code == 0' '.published[0].connections == 2'
}

@test "--ports-fd takes a descriptor of its own; the command has it not, and it is closed before that runs" {
	local fd
	publishes 8080
	for fd in 1 2 x 77 3x; do
		box --ports-fd "$fd" -- touch mark
		want '.status == "error"'
		[ ! -e mark ] || fail "--ports-fd $fd ran"
	done
	box --result-fd 4 --ports-fd 4 -- touch mark 4>"$top/both" || true
	[ ! -e mark ]
	box --ports-fd 4 -- ls /proc/self/fd 4>"$top/told"
	want_exit 0 $'0\n1\n2\n3'
	jq -e '.port == 8080 and .host_port > 0' "$top/told"
	policy_is <<<'network: none'
	box --ports-fd 4 -- true 4>"$top/told"
	want_exit 0
	want '.published == []'
	[ ! -s "$top/told" ]
}

@test "-v says where the ports are; --dry-run takes none" {
	publishes 8080
	box -v -- true
	want_exit 0
	grep -q "^port 8080 of the box is at 127.0.0.1:$(jq '.published[0].host_port' "$result")$" "$words"
	serve
	publishes "\"$host_port:8081\""
	"$AGENTBOX" run --dry-run -p "$policy" -- true >"$top/plan"
	jq -e ".reach.publish == [{port: 8081, host_port: $host_port}]" "$top/plan"
	quit
}
