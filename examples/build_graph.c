/* Build a graph with the public interface, edit it, check it and print it.
 *
 * One layer of a sharded model: the weight is gathered from four ranks, waited for, and multiplied.
 * The graph is first built in the obvious order; then the gather is moved to where it can run while
 * something else is computed, which is what Tuck's passes do for hundreds of collectives.
 *
 *   cc build_graph.c -ltuck && ./a.out
 */
#include <tuck.h>

#include <stdio.h>
#include <stdlib.h>

/* Everything that can fail returns a status; this program stops at the first error. */
static void check(tuck_status status, const char *what)
{
    if (status != TUCK_OK) {
        fprintf(stderr, "%s: %s\n", what, tuck_status_text(status));
        exit(1);
    }
}

/* An input. Its annotation is what PyTorch prints after a name: dtype, sizes, strides, device. */
static tuck_node input(tuck_graph *g, const char *name, const char *annotation)
{
    tuck_node n;

    check(tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, name, NULL, NULL, annotation, &n),
          name);
    return n;
}

/* A call at the end of the graph. The arguments are in Python's notation, nodes by their names,
 * with NULL after the last; tuck_args_node(), tuck_args_int() and so on do the same without
 * text. */
static tuck_node call(tuck_graph *g, const char *target, const char *const *args,
                      const char *annotation)
{
    tuck_args *list = tuck_args_new(g);
    tuck_node n;

    if (list == NULL)
        check(TUCK_ENOMEM, target);
    for (; *args != NULL; args++)
        tuck_args_text(list, *args);
    /* The list remembers an invalid argument; it is reported here. */
    check(tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, target, list, NULL, annotation, &n),
          target);
    tuck_args_free(list);
    return n;
}

static void show(const tuck_graph *g, const char *title)
{
    printf("# %s\n", title);
    check(tuck_graph_print(g, TUCK_FORM_TEXT, NULL, tuck_write_file, stdout), "print");
    printf("\n");
}

int main(void)
{
    const char *relu_args[] = {"x", NULL};
    const char *gather_args[] = {"shard", "4", "'0'", NULL};
    const char *wait_args[] = {"all_gather_into_tensor_default", NULL};
    const char *mm_args[] = {"relu_default", "wait_tensor_default", NULL};
    tuck_graph *g, *before;

    check(tuck_graph_new("Layer", NULL, &g), "new graph");
    input(g, "x", "bf16[32, 1024][1024, 1]cuda:0");
    input(g, "shard", "bf16[256, 512][512, 1]cuda:0");

    /* Nodes are named after what they call, as in PyTorch: relu_default, … */
    tuck_node relu = call(g, "torch.ops.aten.relu.default", relu_args,
                          "bf16[32, 1024][1024, 1]cuda:0");
    tuck_node gather = call(g, "torch.ops._c10d_functional.all_gather_into_tensor.default",
                            gather_args, "bf16[1024, 512][512, 1]cuda:0");
    call(g, "torch.ops._c10d_functional.wait_tensor.default", wait_args,
         "bf16[1024, 512][512, 1]cuda:0");
    tuck_node mm = call(g, "torch.ops.aten.mm.default", mm_args, "bf16[32, 512][512, 1]cuda:0");

    /* The return: one argument, here a tuple built piece by piece. */
    tuck_args *list = tuck_args_new(g);
    if (list == NULL)
        check(TUCK_ENOMEM, "return");
    tuck_args_open(list, TUCK_V_TUPLE);
    tuck_args_node(list, mm);
    tuck_args_close(list);
    check(tuck_graph_add(g, tuck_at_end(), TUCK_OUTPUT, NULL, list, NULL, NULL, NULL), "return");
    tuck_args_free(list);

    /* Keep a copy. Then start the gather before the relu, so that they overlap, and give it a
     * better name. The users of a node are always known. */
    check(tuck_graph_copy(g, &before), "copy");
    check(tuck_node_move(g, gather, tuck_before(relu)), "move");
    check(tuck_node_rename(g, gather, "weight"), "rename");
    for (tuck_use u = tuck_node_uses(g, gather); u.id; u = tuck_use_next(g, u))
        printf("# %s is used by %s\n", tuck_node_name(g, gather),
               tuck_node_name(g, tuck_use_user(g, u)));

    /* Lint checks that a collective is waited for before its result is read, and much else. */
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_status status = tuck_graph_lint(g, diags);
    check(tuck_diags_print(diags, TUCK_PLAIN, tuck_write_file, stdout), "diagnostics");
    check(status, "lint");
    tuck_diags_free(diags);
    show(before, "before");
    show(g, "after");

    tuck_graph_free(before);
    tuck_graph_free(g);
    return 0;
}
