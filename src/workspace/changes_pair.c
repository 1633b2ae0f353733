/* changes_pair: decides from what is there and what the patterns say; looks at nothing itself. */
#define _GNU_SOURCE
#include "workspace/changes_pair.h"
#include "workspace/patterns.h"

bool pair_is_dir(const struct pair *pair, enum walk_tree tree)
{
	return pair->there[tree] && S_ISDIR(pair->place[tree].st.st_mode);
}

bool pair_is_sensitive(unsigned says, const struct pair *pair)
{
	if (says & (MATCH_BELOW | MATCH_SENSITIVE))
		return true;
	bool file = false, link = false, gone = !pair->there[WALK_UPPER];
	for (int i = 0; i < 2; i++) {
		file |= pair->there[i] && !pair_is_dir(pair, i);
		link |= pair->there[i] && S_ISLNK(pair->place[i].st.st_mode);
	}
	return ((says & MATCH_FILE) && file) || ((says & MATCH_PREFIX) && (file || gone)) ||
	       ((says & MATCH_THROUGH) && link);
}

bool pair_is_held(unsigned says, const struct pair *pair)
{
	return (says & MATCH_HELD) || ((says & MATCH_WAY) && pair->there[WALK_UPPER] &&
					      S_ISLNK(pair->place[WALK_UPPER].st.st_mode));
}
