#!/usr/bin/env bash
# The box's side runs between clone and exec, in a copy of the supervisor or even in its memory: nothing
# there may allocate, print or look names up. So its library calls only what is listed in box_symbols.
# failure.c, which words the errors, and join.c run in the supervisor alone and are left out.
#
#	nm_check.sh BUILDDIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
library=$1/src/box/libbox.a

[ -e "$library" ] || { echo "there is no $library"; exit 1; }
LC_ALL=C sort -c "$here/box_symbols"
# The names of large files and of fortified calls are those of the plain ones.
plain() {
	sed -E 's/^__(.*)_chk$/\1/; s/64(_2)?$//; s/^__(open|openat)_2$/\1/' | LC_ALL=C sort -u
}
defined=$(nm --defined-only "$library" 2>/dev/null | awk 'NF == 3 {print $3}' | plain)
wanted=$(nm -A -u "$library" 2>/dev/null | awk '$(NF - 1) == "U" && !/(failure|join)\.c/ {print $NF}' | plain)
# The sanitizers' own calls are in every file of such a build.
extra=$(comm -23 <(comm -23 <(echo "$wanted") <(echo "$defined")) "$here/box_symbols" |
	grep -vE '^__(asan|ubsan|sanitizer)_' || true)
if [ -n "$extra" ]; then
	printf 'src/box may not call:\n%s\n' "$extra"
	exit 1
fi
