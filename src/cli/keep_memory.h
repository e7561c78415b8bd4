#ifndef TUCK_CLI_KEEP_MEMORY_H
#define TUCK_CLI_KEEP_MEMORY_H

/* Memory that is freed stays with the process until it ends: a search that tries one graph after
 * the other needs it again at once, and getting a page from the system takes longer than most of
 * what is done with it. */
void keep_memory(void);

#endif
