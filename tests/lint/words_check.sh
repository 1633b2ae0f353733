#!/usr/bin/env bash
# What must be so in every file of the project: no words of a workplace, no unfinished spots, the agreed
# top level, a licence; sources of a size that can be read, formatted, and scripts that shellcheck takes.
#
#	words_check.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
failed=0

wrong() {
	printf '%s\n' "$@"
	failed=1
}

if git rev-parse --is-inside-work-tree >/dev/null 2>&1 && [ -n "$(git ls-files | head -n 1)" ]; then
	mapfile -t files < <(git ls-files --cached --others --exclude-standard)
else
	mapfile -t files < <(find . -path './.git' -prune -o -path './build*' -prune -o -type f -printf '%P\n')
fi

odd=$(printf '%s\n' "${files[@]}" | cut -d/ -f1 | sort -u |
	grep -vxE 'meson\.build|README\.md|LICENSE|src|man|policies|tests|completions|\..*' || true)
[ -z "$odd" ] || wrong "outside the agreed top level:" "$odd"
for name in LICENSE README.md meson.build src/README.md; do
	[ -s "$name" ] || wrong "missing: $name"
done

# Each pattern is written so that it does not match its own line.
for pattern in '/[w]ork/(main|shared)' '/[f]arm/' '[r]egistry\.npmjs' '[d]eb\.debian\.org' '/[t]mp/(b|i|p)-' \
	'\b(TO[D]O|FIX[M]E|X[X]X)\b' '[n]ot (yet )?implemented'; do
	found=$(printf '%s\0' "${files[@]}" | grep -zv '^tests/fuzz/' |
		xargs -0 grep -nIE -- "$pattern" 2>/dev/null | head -n 5 | cut -c1-160 || true)
	[ -z "$found" ] || wrong "words that do not belong here:" "$found"
done

long=$(printf '%s\0' "${files[@]}" | grep -zE '^src/.*\.[ch]$' | xargs -0 -r wc -l |
	awk '$2 != "total" && $1 > 500 {print $2 ": " $1 " lines"}')
[ -z "$long" ] || wrong "longer than 500 lines:" "$long"

spaces=$(printf '%s\0' "${files[@]}" | grep -zE '\.(c|h|def|bats|bash|sh|py|yaml|build)$' |
	xargs -0 -r grep -nE '[[:blank:]]+$' | head -n 5 || true)
[ -z "$spaces" ] || wrong "blanks at the end of a line:" "$spaces"

if command -v clang-format-14 >/dev/null; then
	# shellcheck disable=SC2016 # $0 is the inner shell's
	unformatted=$(printf '%s\0' "${files[@]}" | grep -zE '^(src|tests)/.*\.[ch]$' |
		xargs -0 -r -n 1 -P 2 sh -c 'clang-format-14 --dry-run -Werror "$0" 2>/dev/null || echo "$0"' | sort)
	[ -z "$unformatted" ] || wrong "clang-format-14 would change:" "$unformatted"
fi

if command -v shellcheck >/dev/null; then
	mapfile -t scripts < <(printf '%s\0' "${files[@]}" |
		xargs -0 grep -lIE '^#!/(usr/bin/env bash|bin/(ba)?sh)' 2>/dev/null || true)
	shellcheck -x "${scripts[@]}" || wrong "shellcheck has complaints"
	shellcheck -x -s bash -e SC1091,SC2030,SC2031,SC2154,SC2314,SC2315 tests/cli/*.bats tests/cli/helpers.bash ||
		wrong "shellcheck has complaints about the tests"
fi

exit "$failed"
