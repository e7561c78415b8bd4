/* Any bytes as the text of a program: what can be read is printed and read again, and is the same;
 * its plan is valid, and its schedule problem can be made. */
#include <stdio.h>
#include <stdlib.h>

#include "plan/from_program.h"
#include "support/program_check.h"

static void check(char *why)
{
    if (why == NULL)
        return;
    fprintf(stderr, "%s\n", why);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    struct program *p = NULL;
    struct problem *problem = NULL;

    if (program_read((const char *)data, size, "f", NULL, d, &p) == TUCK_OK) {
        check(check_program_text(p));
        if (p->n_op < 500 && p->n_buf < 500) {
            check(check_program_plan(p, NULL));
            if (problem_of_program(p, d, &problem) != TUCK_OK && tuck_diags_count(d) == 0)
                check(strdup("refused without a word"));
            problem_free(problem);
        }
    } else if (tuck_diags_count(d) == 0) {
        check(strdup("refused without a word"));
    }
    program_free(p);
    tuck_diags_free(d);
    return 0;
}
