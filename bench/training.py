"""training(nodes): the text of a training step of about that many nodes, and side_car, its side-car."""

WHOLE, SHARD = '"f32[64, 64][64, 1]cuda:0"', '"f32[8, 64][64, 1]cuda:0"'
COMM = "torch.ops._c10d_functional"
side_car = '{"printed_on_rank": 0, "groups": {"0": {"ranks": [0, 1, 2, 3, 4, 5, 6, 7]}}}\n'


def training(nodes):
    """A parameter is gathered before each product, forward and backward; its gradient is scattered."""
    layers, lines = nodes // 18, []
    for i in range(2 * layers):
        k = i if i < layers else 2 * layers - 1 - i
        given = "x" if i == 0 else "d" if i == layers else f"r{i - 1}_3"
        lines += [
            f"g{i}: {WHOLE} = {COMM}.all_gather_into_tensor.default(p{k}, 8, '0')",
            f"a{i}: {WHOLE} = {COMM}.wait_tensor.default(g{i})",
            f"m{i}: {WHOLE} = torch.ops.aten.mm.default({given}, a{i})",
            f"r{i}_0: {WHOLE} = torch.ops.aten.relu.default(m{i})",
            *(f"r{i}_{n}: {WHOLE} = torch.ops.aten.sin.default(r{i}_{n - 1})" for n in (1, 2, 3)),
        ]
        if i >= layers:
            lines += [
                f"w{i}: {WHOLE} = torch.ops.aten.mm.default(r{k}_3, r{i}_3)",
                f"s{i}: {SHARD} = {COMM}.reduce_scatter_tensor.default(w{i}, 'avg', 8, '0')",
                f"b{i}: {SHARD} = {COMM}.wait_tensor.default(s{i})",
                f"c{i}: {SHARD} = torch.ops.aten.neg.default(b{i})",
            ]
    inputs = ", ".join([f"x: {WHOLE}", f"d: {WHOLE}", *(f"p{i}: {SHARD}" for i in range(layers))])
    body = "".join(f"        {line}\n" for line in lines)
    returned = "".join(f"c{i}, " for i in range(layers, 2 * layers))
    return f"class step(torch.nn.Module):\n    def forward(self, {inputs}):\n{body}        return ({returned})\n"


def write(nodes, path):
    path.write_text(training(nodes))
    path.with_suffix(".json").write_text(side_car)
