/* Lower a graph, find a better order for its ops, and print the graph in that order.
 *
 *   cc schedule_graph.c -ltuck && ./a.out llama_fsdp_bw.txt
 */
#include <tuck_experimental.h> /* programs and schedules */

#include <stdio.h>
#include <stdlib.h>

/* This program stops at the first error. */
static void check(tuck_status status, const char *what, const tuck_diags *diags)
{
    if (status == TUCK_OK)
        return;
    tuck_diags_print(diags, TUCK_PLAIN, tuck_write_file, stderr);
    fprintf(stderr, "%s: %s\n", what, tuck_status_text(status));
    exit(1);
}

/* Without a file: two layers of a sharded model, each gathered right before its use. */
static const char small[] =
    "class step(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[4096, 4096][4096, 1]cuda:0\", "
    "a: \"f32[512, 4096][4096, 1]cuda:0\", b: \"f32[512, 4096][4096, 1]cuda:0\"):\n"
    "        ga: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '0')\n"
    "        wa: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(ga)\n"
    "        y: \"f32[4096, 4096][4096, 1]cuda:0\" = torch.ops.aten.mm.default(x, wa)\n"
    "        gb: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(b, 8, '0')\n"
    "        wb: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(gb)\n"
    "        z: \"f32[4096, 4096][4096, 1]cuda:0\" = torch.ops.aten.mm.default(y, wb)\n"
    "        return (z,)\n";

int main(int argc, char **argv)
{
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_doc *doc;
    tuck_program *program;
    tuck_problem *problem;
    tuck_schedule *schedule;
    tuck_memory before, after;

    if (argc > 1)
        check(tuck_doc_read_file(argv[1], NULL, diags, &doc), argv[1], diags);
    else
        check(tuck_doc_read_text(small, sizeof(small) - 1, "step", NULL, diags, &doc), "step",
              diags);
    tuck_graph *g = tuck_doc_graph(doc, 0);

    /* Find the buffers and kernels, and their times on the machine that the graph suggests. */
    check(tuck_graph_lower(g, NULL, diags, &program), "lower", diags);
    check(tuck_program_plan(program, NULL, &before), "plan", diags);

    /* The same without anything of PyTorch in it, for schedulers. */
    check(tuck_program_problem(program, diags, &problem), "problem", diags);
    check(tuck_schedule_new(problem, NULL, diags, &schedule), "schedule", diags);
    int64_t exposed = tuck_schedule_exposed_ps(schedule);
    check(tuck_schedule_run(
              schedule,
              "reorder_communication_preserving_peak_memory(reorder_iterative_peak_memory_"
              "budget=1),sink_waits_iterative",
              diags),
          "run", diags);
    const uint32_t *order = tuck_schedule_order(schedule);
    check(tuck_program_plan(program, order, &after), "plan", diags);
    fprintf(stderr, "%u ops, exposed communication %.1f us -> %.1f us, peak %.1f MiB -> %.1f MiB\n",
            tuck_program_op_count(program), (double)exposed / 1e6,
            (double)tuck_schedule_exposed_ps(schedule) / 1e6, (double)before.peak / 1048576,
            (double)after.peak / 1048576);

    /* Write the order back into the graph. */
    check(tuck_program_apply(program, order, g), "apply", diags);
    check(tuck_graph_lint(g, diags), "lint", diags);
    check(tuck_graph_print(g, TUCK_FORM_TEXT, diags, tuck_write_file, stdout), "print", diags);
    tuck_schedule_free(schedule);
    tuck_problem_free(problem);
    tuck_program_free(program);
    tuck_doc_free(doc);
    tuck_diags_free(diags);
    return 0;
}
