/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables on the terminal. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <errno.h>
#include <error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libsmartcols.h>

/* Tabs separate the names of the columns.  @how: r aligns one to the right, t may cut it. */
static inline struct libscols_table *table(const char *heads, const char *how)
{
	struct libscols_table *t = scols_new_table();

	for (; t && *how; how++, heads += strcspn(heads, "\t") + 1) {
		char *head = strndup(heads, strcspn(heads, "\t"));

		if (!head || !scols_table_new_column(t, head, 0, *how == 'r' ? SCOLS_FL_RIGHT :
						     *how == 't' ? SCOLS_FL_TRUNC : 0))
			t = NULL;
		free(head);
	}
	if (!t)
		error(1, ENOMEM, "table");
	return t;
}

/* Adds a line.  Tabs separate its cells; an empty one shows "-". */
static inline void __attribute__((format(printf, 2, 3)))
row(struct libscols_table *t, const char *fmt, ...)
{
	struct libscols_line *line = scols_table_new_line(t, NULL);
	char *text, *rest, *cell;
	va_list ap;
	int bad;

	va_start(ap, fmt);
	bad = !line || vasprintf(&text, fmt, ap) < 0;
	va_end(ap);
	rest = bad ? NULL : text;
	for (size_t n = 0; !bad && (cell = strsep(&rest, "\t")); n++)
		bad = scols_line_set_data(line, n, *cell ? cell : "-");
	if (bad)
		error(1, ENOMEM, "table");
	free(text);
}

static inline void print_table(struct libscols_table *t)
{
	scols_print_table(t);
	scols_unref_table(t);
}

#endif
