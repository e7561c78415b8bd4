/* Any bytes as a cluster file and as a profile: nothing crashes; an error has a diagnostic with a
 * message; a valid cluster gives times that are numbers and do not decrease as messages grow; a
 * valid profile is found again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuck.h"

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_cluster(const tuck_cluster *c)
{
    for (int coll = TUCK_ALL_REDUCE; coll <= TUCK_SHARD_DIM_ALLTOALL; coll++)
        for (int64_t ranks = 2; ranks <= 40; ranks += ranks < 9 ? 1 : 15) {
            int64_t before = 0;
            for (int64_t bytes = 1; bytes < (int64_t)1 << 42; bytes *= 37) {
                tuck_collective q = {.coll = (tuck_coll)coll, .bytes = bytes, .ranks = ranks};
                tuck_collective_cost x;
                if (tuck_cost_collective(c, &q, &x) != TUCK_OK)
                    fail("a good question has no answer");
                if (x.ps < before)
                    fail("a time is not known, or falls");
                before = x.ps;
            }
        }
}

static void check_errors(tuck_status st, const tuck_diags *d)
{
    if (st == TUCK_OK && tuck_diags_errors(d) > 0)
        fail("read, though there are errors");
    if (st == TUCK_OK || st == TUCK_ENOMEM)
        return;
    if (tuck_diags_errors(d) == 0)
        fail("refused without a word");
    for (size_t i = 0; i < tuck_diags_count(d); i++)
        if (*tuck_diags_at(d, i)->message == '\0')
            fail("an error without a message");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_cluster *c;
    tuck_profile *p;

    if (d == NULL)
        abort();
    tuck_status st = tuck_cluster_read_text((const char *)data, size, "c.json", NULL, d, &c);
    check_errors(st, d);
    if (st == TUCK_OK) {
        check_cluster(c);
        tuck_cluster_free(c);
    }
    tuck_diags_clear(d);
    st = tuck_profile_read_text((const char *)data, size, "p.json", NULL, d, &p);
    check_errors(st, d);
    if (st == TUCK_OK) {
        int64_t ps;
        if (tuck_profile_ps(p, "mm", &ps) && ps < 0)
            fail("a time below nothing");
        tuck_profile_free(p);
    }
    tuck_diags_free(d);
    return 0;
}
