/* dump: the tables of report/ and of base/err as lines, for the tests that hold copies to them. */
#ifndef AGENTBOX_REPORT_DUMP_H
#define AGENTBOX_REPORT_DUMP_H

struct buf;

/* path TAB type TAB nullable (yes, no) TAB help TAB values (separated by spaces); 0 or -errno. */
int result_dump_fields(struct buf *out);

/* name TAB exit status TAB meaning; 0 or -errno. */
int result_dump_errors(struct buf *out);

#endif
