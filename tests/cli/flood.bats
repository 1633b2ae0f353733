# Output without an end: what many boxes write at once costs the host no memory, and one is not held back.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

MiB=1048576

# flood SIZE: the command inside that writes so much. (64 KiB at a time, which is what a pipe holds.)
flood() {
	inside=(head -c "$1" /dev/zero)
}

# cut TOTAL: all of it was counted, and no more than the limit was kept.
cut_at() {
	want_exit 0
	want ".stdout_bytes == $1 and .stdout_truncated and .limits_hit == []" \
		".stdout | length | . >= $MiB and . < $MiB + 100"
}

@test "C08: 50 boxes that flood their output at once are counted and cut, each agentbox staying small" {
	policy_is <<<'limits: {output: 1MiB, wall: 300s}'
	local size=$((128 * MiB)) sum most
	flood "$size"
	"$python" "$BATS_TEST_DIRNAME/flood.py" 50 "$AGENTBOX" run -p "$policy" -- "${inside[@]}" >"$top/all" 2>"$words" 3>&-
	tail -n 1 "$top/all" >"$result"
	keep_result "$result"
	read -r sum most < <(awk -v size="$size" -v max="$MiB" '
		$2 == "exited" && $3 == 0 && $4 == size && $5 == "True" && $6 >= max && $6 < max + 100 {
			right++
			sum += $1
			if ($1 > most) most = $1
		}
		END {if (right == 50) print sum, most; else print 0, right}' "$top/all")
	echo "# $sum KiB in all, $most KiB at most" >&3
	[ "${sum:-0}" -gt 0 ] && [ "$sum" -lt $((50 * 16 * 1024)) ]
}

@test "C08: one box that floods its output is not held back" {
	policy_is <<<'limits: {output: 1MiB, wall: 300s}'
	local size=$((1024 * MiB)) ms
	flood "$size"
	box -- "${inside[@]}"
	cut_at "$size"
	ms=$(jq '.timing.run_us / 1000 | ceil' "$result")
	echo "# $((size / 1000 / ms)) MB/s" >&3
	[ $((size / 1000 / ms)) -ge 100 ]
}
