#include "report/collective_show.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/json.h"
#include "base/units.h"

static const char *way_name(tuck_algorithm a, const char *protocol, char out[48])
{
    snprintf(out, 48, "%s%s%s", tuck_algorithm_name(a), *protocol ? " " : "", protocol);
    return out;
}

static void put_time(const tuck_collective *q, const tuck_collective_cost *x, struct buf *out)
{
    char t[32];

    ink_line(out, INK_HEAD, "  time       %s", text_of_ps(x->ps, t));
    buf_printf(out, "  latency    %s for any size\n", text_of_ps(x->latency_ps, t));
    if (x->ramp_ps > 0)
        buf_printf(out, "  ramp       %s, grows with the square root of the size\n",
                   text_of_ps(x->ramp_ps, t));
    buf_printf(out, "  bytes      %s", text_of_ps(x->bytes_ps, t));
    if (x->ps > 0)
        ink_printf(out, INK_DIM, "; %.1f GB/s over all", (double)q->bytes / ns_of_ps(x->ps));
    buf_chr(out, '\n');
}

static void put_ways(const tuck_collective_cost *x, struct buf *out)
{
    char t[32], way[48];

    for (uint32_t i = 0; i < x->n_alternatives && x->n_alternatives > 1; i++)
        ink_line(out, x->alternative[i].ps == x->ps ? INK_GOOD : INK_PLAIN,
                 "  %-10s %-20s %-11s %s%s", i == 0 ? "all ways" : "",
                 way_name(x->alternative[i].algorithm, x->alternative[i].protocol, way),
                 tuck_cost_model_name(x->alternative[i].model), text_of_ps(x->alternative[i].ps, t),
                 x->alternative[i].symmetric ? ", with symmetric memory" : "");
}

void collective_table(const struct collective_answer *a, struct buf *out)
{
    const tuck_collective_cost *x = a->x;
    const char *cluster = tuck_cluster_name(a->cluster);
    char b[32], way[48];

    wrap_hang(out, INK_HEAD, 0, "%s of %s (%" PRId64 " bytes) over %" PRId64 " ranks of %s",
              tuck_coll_name(a->q->coll), text_of_bytes(a->q->bytes, b), a->q->bytes, a->q->ranks,
              cluster);
    if (tuck_cluster_is_assumed(a->cluster))
        ink_line(out, INK_DIM, "  cluster    %s, assumed; give it with --cluster", cluster);
    buf_printf(out, "  group      %" PRId64 " node%s, at most %" PRId64 " rank%s on one\n",
               x->nodes, x->nodes == 1 ? "" : "s", x->per_node, x->per_node == 1 ? "" : "s");
    put_time(a->q, x, out);
    buf_printf(out, "  algorithm  %s\n", way_name(x->algorithm, x->protocol, way));
    size_t from = wrap_begin(out);
    buf_printf(out, "  model      %s: ", tuck_cost_model_name(x->model));
    ink_str(out, INK_DIM, x->source);
    wrap_end(out, from, 13);
    buf_chr(out, '\n');
    put_ways(x, out);
}

static void json_ways(const tuck_collective_cost *x, struct json_out *j)
{
    json_open(j, "alternatives", '[');
    for (uint32_t i = 0; i < x->n_alternatives; i++) {
        json_open(j, NULL, '{');
        j->flat = true;
        json_float(j, "ns", ns_of_ps(x->alternative[i].ps));
        json_str(j, "model", tuck_cost_model_name(x->alternative[i].model));
        json_str(j, "algorithm", tuck_algorithm_name(x->alternative[i].algorithm));
        json_str(j, "protocol", x->alternative[i].protocol);
        json_bool(j, "symmetric", x->alternative[i].symmetric);
        json_close(j, '}');
        j->flat = false;
    }
    json_close(j, ']');
}

void collective_json(const struct collective_answer *a, struct buf *out)
{
    const tuck_collective_cost *x = a->x;
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "cluster", tuck_cluster_name(a->cluster));
    json_str(&j, "coll", tuck_coll_name(a->q->coll));
    json_int(&j, "bytes", a->q->bytes);
    json_int(&j, "ranks", a->q->ranks);
    json_int(&j, "nodes", x->nodes);
    json_int(&j, "per_node", x->per_node);
    json_float(&j, "ns", ns_of_ps(x->ps));
    json_float(&j, "latency_ns", ns_of_ps(x->latency_ps));
    json_float(&j, "ramp_ns", ns_of_ps(x->ramp_ps));
    json_float(&j, "bytes_ns", ns_of_ps(x->bytes_ps));
    json_str(&j, "model", tuck_cost_model_name(x->model));
    json_str(&j, "algorithm", tuck_algorithm_name(x->algorithm));
    json_str(&j, "protocol", x->protocol);
    json_str(&j, "source", x->source);
    json_ways(x, &j);
    json_close(&j, '}');
    json_end(&j);
}
