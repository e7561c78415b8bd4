/* The sequence of communication of a graph, and its digest. */
#include <stdio.h>

#include "api/api.h"
#include "api/machine_api.h"
#include "study/digest.h"

static tuck_status sequence_take(tuck_graph *g, const tuck_machine *m, struct sequence *out)
{
    struct given_machine *given = NULL;

    *out = (struct sequence){.digest = 0};
    if (g == NULL)
        return TUCK_EINVAL;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL);
    if (st == TUCK_OK)
        st = machine_take(m, g, MACHINE_SYMBOLS, NULL, &given);
    if (st != TUCK_OK)
        return st;
    struct assume symbols = machine_symbols(&given->machine, g->store);
    st = sequence_of(g, &symbols, out);
    machine_drop(given);
    return st;
}

tuck_status tuck_graph_sequence_digest(tuck_graph *g, const tuck_machine *m,
                                       char out[TUCK_DIGEST_TEXT])
{
    struct sequence s;
    tuck_status st = out != NULL ? sequence_take(g, m, &s) : TUCK_EINVAL;

    if (out == NULL)
        return st;
    if (st == TUCK_OK)
        snprintf(out, TUCK_DIGEST_TEXT, "%016llx", (unsigned long long)s.digest);
    sequence_end(&s);
    return st;
}

tuck_status tuck_graph_sequence_print(tuck_graph *g, const tuck_machine *m, tuck_write_fn write,
                                      void *ctx)
{
    struct sequence s;

    if (write == NULL)
        return TUCK_EINVAL;
    tuck_status st = sequence_take(g, m, &s);
    if (st == TUCK_OK && s.text.len > 0 && !write(ctx, s.text.at, s.text.len))
        st = TUCK_EIO;
    sequence_end(&s);
    return st;
}

tuck_status tuck_graph_program_digest(tuck_graph *g, char out[TUCK_DIGEST_TEXT])
{
    struct program_digest d;

    if (g == NULL || out == NULL)
        return TUCK_EINVAL;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL);
    if (st != TUCK_OK)
        return st;
    st = program_digest_of(g, &d);
    if (st == TUCK_OK)
        snprintf(out, TUCK_DIGEST_TEXT, "%016llx", (unsigned long long)d.all);
    program_digest_end(&d);
    return st;
}
