/* Jobs as the input of a command: folders, archives, logs of several ranks. */
#ifndef TUCK_CLI_JOB_INPUT_H
#define TUCK_CLI_JOB_INPUT_H

#include "cli/cli.h"

/* Are the paths of a command a job, and not one text? */
bool job_wanted(const struct input *in);

/* Reads it: in->job and in->doc, a document of the job. Returns an exit code. */
int job_open(struct input *in);

/* After --group was applied to the parts: the steps, or what --graph and --rank pick. */
int job_choose_doc(struct input *in);

/* "the step of rank 0: forward 0/0, …" above a table; for other graphs, put_graph(). */
void put_part(const struct input *in, size_t i);

/* Is this argument a further path of the job, and not another kind of word? */
bool job_takes(struct argp_state *state, struct input *in, const char *arg);

#endif
