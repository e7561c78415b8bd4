"""Kernels that draw random numbers: not torch's numbers, but torch's distributions.

20,000 numbers of each are compared with as many of torch's own, by the largest distance of their cumulative distributions
(Kolmogorov and Smirnov); what must hold exactly does: what dropout keeps is scaled as torch scales it, a permutation has
each number once, samples without replacement differ.
"""

import itertools
import unittest

import torch
import torch._inductor.inductor_prims  # noqa: F401  registers prims.inductor_*

import kernels
from shapes import operator_of, rows

N = 20000
FARTHEST = 2.6 * (2 / N) ** 0.5  # of two samples of one distribution: farther apart in three of a million times
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
HALF = torch.full((N,), 0.5)
KERNELS = set("""rand randn uniform normal normal_of exponential geometric cauchy log_normal bernoulli bernoulli_of dropout
    randint random random_from randperm multinomial seeds lookup_seed seeded seeded_int""".split())  # with tests here


def like(dtype=torch.float32):
    return torch.zeros(N, dtype=dtype)


def calls():
    """Operands of every row whose result is a sample."""
    cpu = {"device": torch.device("cpu")}
    seed = torch.tensor(12345)
    weight = torch.tensor([0.0, 1.0, 5.0, 2.0, 0.0, 2.0])
    for name in ("rand", "randn"):
        for dtype in DTYPES:
            yield f"aten.{name}.default", [[N]], {"dtype": dtype}
            yield f"aten.{name}_like.default", [like(dtype)], {}
        yield f"aten.{name}.default", [[N // 100, 100]], {}
        yield f"aten.{name}.generator", [[N]], {"generator": None}
    for form in ("uniform", "uniform_"):
        yield f"aten.{form}.default", [like(), -2.0, 3.0], {}
    shared = {"dtype": torch.float32, "device": torch.device("cpu")}
    yield "prims.uniform.default", [[N]], {"low": 1.0, "high": 5.0, "stride": [1], **shared}
    yield "prims.normal.default", [[N]], {"mean": 1.0, "std": 5.0, "requires_grad": False, **shared}
    for form in ("normal_", "normal_functional"):
        yield f"aten.{form}.default", [like(), -2.0, 3.0], {}
    mean, deviation = torch.linspace(-1, 1, N), torch.linspace(0.5, 2, N)
    yield "aten.normal.Tensor_Tensor", [mean, deviation], {}
    yield "aten.normal.Tensor_float", [mean, 0.5], {}
    yield "aten.normal.float_Tensor", [0.5, deviation], {}
    yield "aten.normal.float_float", [0.5, 2.0, [N]], {}
    for form in ("", "_"):
        yield f"aten.exponential{form}.default", [like(), 3.0], {}
        yield f"aten.geometric{form}.default", [like(), 0.3], {}
        yield f"aten.cauchy{form}.default", [like(), 1.0, 2.0], {}
        yield f"aten.log_normal{form}.default", [like(), 0.5, 0.25], {}
    yield "aten.bernoulli.default", [HALF * 0.4], {}
    yield "aten.bernoulli.Tensor", [like(), HALF * 0.4], {}
    yield "aten.bernoulli_.Tensor", [like(), torch.tensor(0.3)], {}
    for dtype in (torch.float32, torch.bool, torch.int64):
        yield "aten.bernoulli.p", [like(dtype), 0.1], {}
        yield "aten.bernoulli_.float", [like(dtype), 0.7], {}
    for p in (0.0, 1.0):
        yield "aten.bernoulli.p", [like(), p], {}
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.float32):
        yield "aten.randint.default", [50, [N]], {"dtype": dtype}
        yield "aten.randint_like.default", [like(dtype), 50], {}
    yield "aten.randint.low", [-50, 50, [N]], {}
    yield "aten.randint.generator", [9, [N]], {"generator": None}
    yield "aten.randint.low_generator", [3, 9, [N]], {"generator": None}
    yield "aten.randint_like.low_dtype", [like(torch.int16), -7, 3], {}
    for form in ("random", "random_"):
        for dtype in (torch.float32, torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool):
            yield f"aten.{form}.default", [like(dtype)], {}
        yield f"aten.{form}.to", [like(torch.int64), 17], {}
        yield f"aten.{form}.from", [like(torch.int64), -17, 17], {}
        yield f"aten.{form}.from", [like(torch.int32), 5, None], {}
    yield "aten.multinomial.default", [weight, N, True], {}
    for mode in ("rand", "randn"):
        yield "prims.inductor_random.default", [[N], seed, mode], {}
    yield "prims.inductor_randint.default", [-3, 20, [N], seed], {}
    yield "prims.inductor_seeds.default", [N, cpu["device"]], {}


def run_all(given):
    """By call: what torch gives and what Tuck's kernel gives."""
    cases = [kernels.make_case(rows()[name], operator_of(name), args, kwargs) for name, args, kwargs in given]
    refused = [name for (name, *_), case in zip(given, cases) if case is None]
    if refused:
        raise AssertionError(f"torch refuses {refused}")
    found = []
    for case, (error, data) in zip(cases, kernels.run_cases(cases)):
        if error:
            raise AssertionError(f"{kernels.show(case)}: {error}")
        found.append((case.expected, [kernels.as_tensor(t, data[case.encoder.tensor(t)]) for t in case.outs]))
    return found


def run(name, args, kwargs):
    return run_all([(name, args, kwargs)])[0]


def distance(a, b):
    """The largest distance of two cumulative distributions."""
    a, b = (t.reshape(-1).double().sort().values for t in (a, b))
    at = torch.cat([a, b])
    return (torch.searchsorted(a, at, right=True) / len(a) - torch.searchsorted(b, at, right=True) / len(b)).abs().max().item()


class RandomTest(unittest.TestCase):
    def test_distributions(self):
        given = list(calls())
        tested = {name for name, *_ in given}
        for (name, args, kwargs), ((want,), (got,)) in zip(given, run_all(given)):
            with self.subTest(name, args=[a for a in args if not isinstance(a, torch.Tensor)], **kwargs):
                self.assertLess(distance(want, got), FARTHEST)
                self.assertFalse(got.isnan().any() if got.is_floating_point() else False)
        alone = {"aten.native_dropout.default", "aten.randperm.default", "aten.randperm.generator", "prims.inductor_lookup_seed.default", "prims.inductor_seed.default"}
        self.assertEqual({n for n, row in rows().items() if row["kernel"] in KERNELS} - tested, alone)

    def test_neighbors_are_independent(self):
        for name in ("aten.rand.default", "aten.randn.default"):
            _, (got,) = run(name, [[N]], {})
            got = got - got.mean()
            for lag in (1, 2, 7, 512):
                self.assertLess(abs((got[lag:] * got[:-lag]).mean() / got.var()).item(), 5 / N**0.5)

    def test_dropout(self):
        for dtype in DTYPES:
            for p in (0.1, 0.5, 1.0, 0.0):
                x = torch.randn(N, dtype=torch.float64).to(dtype)
                _, (y, mask) = run("aten.native_dropout.default", [x, p, True], {})
                self.assertLess(abs(mask.double().mean().item() - (1 - p)), 5 * (p * (1 - p) / N) ** 0.5 + 1e-12)
                self.assertTrue(torch.equal(y, x * mask * (1 / (1 - p) if p < 1 else 0)))
        _, (y, mask) = run("aten.native_dropout.default", [x, 0.5, False], {})
        self.assertTrue(torch.equal(y, x) and mask.all())

    def test_places(self):
        _, (got,) = run("aten.randperm.default", [N], {})
        self.assertTrue(torch.equal(got.sort().values, torch.arange(N)))
        self.assertLess(distance(got[: N // 2], got[N // 2 :]), 2 * FARTHEST)
        _, (got,) = run("aten.multinomial.default", [torch.ones(300, 20), 20, False], {})
        self.assertTrue(torch.equal(got.sort(-1).values, torch.arange(20).expand(300, 20)))
        first = torch.bincount(got[:, 0], minlength=20)
        self.assertLess(first.max().item(), 40)

    def test_attention(self):
        """The weights that are kept are read off by values that are the identity; with them, the formula and its gradients."""
        p, n, keys, dtype = 0.3, 150, 40, torch.float64
        for form, causal in itertools.product(("flash", "efficient", "cudnn"), (False, True)):
            q, k, v = (torch.randn(2, 3, m, 8, dtype=dtype, requires_grad=True) for m in (n, keys, keys))
            scores = q @ k.transpose(-1, -2) / 8**0.5
            if causal:
                scores = scores.masked_fill(torch.ones(n, keys, dtype=torch.bool).triu(1), -torch.inf)
            weights = scores.softmax(-1)
            one = torch.eye(keys, dtype=dtype).expand(2, 3, keys, keys)
            seen, sums, seed = self.attend(form, q, k, one, p, causal)
            seen = seen / weights.detach()
            kept = (seen > 0).to(dtype)
            drawn = seen[~seen.isnan()]
            self.assertTrue(torch.allclose(drawn[drawn > 0], torch.tensor(1 / (1 - p), dtype=dtype)))
            self.assertLess(abs((drawn > 0).double().mean().item() - (1 - p)), 5 * (p * (1 - p) / drawn.numel()) ** 0.5)
            out = (weights * kept / (1 - p)) @ v
            got, sums, seed = self.attend(form, q, k, v, p, causal)
            self.assertTrue(torch.allclose(got, out))
            grad = torch.randn_like(out)
            want = torch.autograd.grad(out, (q, k, v), grad)
            for name, a, b in zip("qkv", self.attend_back(form, grad, q, k, v, got, sums, seed, p, causal), want):
                self.assertTrue(torch.allclose(a, b), (form, causal, name))

    def call(self, name, args, results):
        args = [a.detach().contiguous() if isinstance(a, torch.Tensor) else a for a in args]
        case = kernels.Case(rows()[name], args, [kernels.room_like(t) for t in results], results, [])
        error, data = kernels.run_cases([case])[0]
        self.assertIsNone(error)
        return [kernels.as_tensor(t, data[case.encoder.tensor(t)]) for t in case.outs]

    def attend(self, form, q, k, v, p, causal):
        out, seed = torch.empty(*q.shape[:3], v.size(3), dtype=q.dtype), torch.empty((), dtype=torch.int64)
        sums, none = torch.empty(q.shape[:3], dtype=q.dtype), torch.empty(0)
        number = torch.empty((), dtype=torch.int64)
        if form == "efficient":
            got = self.call("aten._scaled_dot_product_efficient_attention.default", [q, k, v, None, True, p, causal, None], [out, sums, seed, number])
            return got[0], got[1], got[2]
        if form == "cudnn":
            args, sums = [q, k, v, None, True, p, causal, False, None], sums.unsqueeze(-1)
        else:
            args, seed = [q, k, v, p, causal, False, None], torch.empty(2, dtype=torch.uint64)
        none = torch.empty(0, dtype=torch.int32)
        got = self.call(f"aten._scaled_dot_product_{form}_attention.default", args, [out, sums, none, none.clone(), number, number.clone(), seed, number.clone(), none.clone()])
        return got[0], got[1], got[6]

    def attend_back(self, form, grad, q, k, v, out, sums, seed, p, causal):
        n, keys, number = q.size(2), k.size(2), torch.zeros((), dtype=torch.int64)
        args = {
            "flash": [grad, q, k, v, out, sums, None, None, n, keys, p, causal, seed, number, None],
            "efficient": [grad, q, k, v, None, out, sums, seed, number, p, [True, True, True, False], causal, None],
            "cudnn": [grad, q, k, v, out, sums, seed, number, None, None, None, n, keys, p, causal, None],
        }[form]
        return self.call(f"aten._scaled_dot_product_{form}_attention_backward.default", args, [q.detach(), k.detach(), v.detach()])

    def test_seeds(self):
        seeds = torch.arange(5) * 1000
        for i in range(5):
            (want,), (got,) = run("prims.inductor_lookup_seed.default", [seeds, i], {})
            self.assertTrue(torch.equal(want, got))
        draws = [run("prims.inductor_random.default", [[N], torch.tensor(s), "rand"], {})[1][0] for s in (1, 1, 2)]
        self.assertTrue(torch.equal(draws[0], draws[1]))
        self.assertLess((draws[0] == draws[2]).sum().item(), 20)


if __name__ == "__main__":
    unittest.main()
