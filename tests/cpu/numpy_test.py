#!/usr/bin/env python3
"""Holds the evaluator (runtime/cpu, through fir_eval) against NumPy and SciPy, in native and in double precision.

usage: numpy_test.py FIR_EVAL OPS_DEF

Every op of the table is covered: a pointwise op on all pairs (triples) of special and random values of every dtype that it takes, and all
combinations of dtypes, rank 0 and scalars for their promotion; reductions over every set of dims. FUSIOND_TEST_SEED repeats a run.
"""
import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import numpy_reference as ref
    import scipy.special
    import scipy.stats
except ImportError as error:
    print(f"skipped: {error} (python3-numpy and python3-scipy are needed)")
    sys.exit(77)

FIR_EVAL, OPS_DEF = sys.argv[1:3]
SEED = int(os.environ.get("FUSIOND_TEST_SEED", np.random.SeedSequence().entropy % 2**32))
ROW = re.compile(r'^FUSIOND_OP\(\w+, "(\w+)", (\d+), (\d+), (\d+), (\w+), (\w+)', re.M)
with open(OPS_DEF, encoding="utf-8") as ops_def:
    OPS = {name: (int(arity), op_class, promotion) for name, arity, _, _, op_class, promotion in ROW.findall(ops_def.read())}
POINTWISE = {name: row for name, row in OPS.items() if row[1] == "kPointwise" and name != "cast"}
# Ops whose own name does not stand in a case below would go untested: the last test compares.
COVERED = {"input", "constant"}


class Graph:
    """Text of a graph under construction, its input files and the outputs it should give."""

    def __init__(self):
        self.lines, self.inputs, self.expected, self.count = ["fir 1"], [], [], 0

    def node(self, text, results=1):
        names = [f"%{self.count + i}" for i in range(results)]
        self.count += results
        self.lines.append(f"{', '.join(names)} = {text}")
        return names if results > 1 else names[0]

    def input(self, dtype, x, scalar=False):
        self.inputs.append(ref.encode(dtype, x))
        shape = "" if scalar else f"[{','.join(map(str, x.shape))}]"
        return self.node(f"input : {dtype}{shape}")

    def op(self, text, results=1):
        COVERED.add(text.split()[0])
        return self.node(text, results)

    def output(self, name, what, dtype, x, relative=2e-15, any_zero=False, steps=1):
        """relative: of double results; steps: how many neighbours away a rounded result may be."""
        self.lines.append(f"output {name}")
        self.expected.append((what, dtype, x, relative, any_zero, steps))

    def run(self, folder, exact):
        paths = []
        for i, data in enumerate(self.inputs + ["\n".join(self.lines).encode() + b"\n"]):
            paths.append(os.path.join(folder, f"{i}.bin"))
            with open(paths[-1], "wb") as file:
                file.write(data)
        output = os.path.join(folder, "out.bin")
        done = subprocess.run([FIR_EVAL, "--precision=" + ("double" if exact else "native"), "--output=" + output, paths[-1], *paths[:-1]],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"fir_eval: status {done.returncode}: {done.stderr}\n" + "\n".join(self.lines[:60]))
        with open(output, "rb") as file:
            return done.stdout.splitlines(), file.read()


class Check(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(SEED)

    def evaluate(self, build):
        """build(graph, exact) for both precisions; every output compared."""
        for exact in (False, True):
            graph = Graph()
            build(graph, exact)
            with tempfile.TemporaryDirectory() as folder:
                lines, data = graph.run(folder, exact)
            self.assertEqual(len(lines), len(graph.expected))
            offset, findings = 0, []
            for line, (what, dtype, x, *tolerance) in zip(lines, graph.expected):
                x = np.asarray(x)
                shown = f"{dtype}[{','.join(map(str, x.shape))}]"
                self.assertTrue(line.startswith(shown + "{"), f"{what}: type {line}, expected {shown}")
                stored = "f64" if exact and ref.is_float(dtype) else dtype
                size = x.size * np.dtype(ref.STORAGE[stored]).itemsize
                got = ref.decode(stored, data[offset:offset + size], x.shape)
                offset += size
                found = self.difference(dtype, got, x, exact, *tolerance)
                if found:
                    findings.append(f"{what}, {'double' if exact else 'native'}: {found}")
            self.assertEqual(offset, len(data))
            self.assertFalse(findings, f"{len(findings)} outputs are wrong (FUSIOND_TEST_SEED={SEED})\n" + "\n".join(findings[:20]))

    @staticmethod
    def difference(dtype, got, expected, exact, relative, any_zero, steps):
        """What is wrong with an output, in words, or nothing."""
        if not ref.is_float(dtype):
            wrong = got != expected
        else:
            with np.errstate(all="ignore"):
                kind = "f64" if exact else dtype
                allowed = (relative * np.abs(expected) if kind == "f64" else 0) + steps * ref.step(kind, expected)
                near = np.abs(got - expected) <= allowed
            # SciPy's functions give zero where the result is subnormal.
            near |= (expected == 0) & (np.abs(got) < np.finfo(np.float64).tiny) & (np.signbit(got) == np.signbit(expected))
            same = (got == expected) & (any_zero | (got != 0) | (np.signbit(got) == np.signbit(expected)))
            wrong = ~(same | (np.isnan(got) & np.isnan(expected)) | (near & (got != 0)))
        if not np.any(wrong):
            return None
        at = tuple(np.argwhere(wrong)[0])
        return (f"{np.count_nonzero(wrong)} of {got.size} elements differ, first at {list(map(int, at))}: "
                f"{got[at]!r}, expected {expected[at]!r}")

    def values(self, dtype, few=False):
        """Special and random values of a dtype."""
        if dtype == "bool":
            return np.array([0, 1], np.int64)
        if not ref.is_float(dtype):
            width = ref.WIDTH[dtype]
            low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
            special = [0, 1, -1, 2, 5, low, high] + ([] if few else [-2, 3, 7, 31, 32, 33, 63, 64, 65, low + 1, high - 1, (1 << (width - 2)) + (1 << (width - 26)) + 1])
            random = self.random.integers(low, high, 2 if few else 8, endpoint=True)
            return np.concatenate([np.array(special, np.int64), random, self.random.integers(-9, 9, 2 if few else 4)])
        bits, smallest, largest = ref.FORMAT[dtype]
        special = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 3.0, -2.5]
        if not few:
            special += [1 - 2.0**-bits, 2.0**-bits - 1, -0.5, 1.5, 2.0, -3.0, 0.0625, 1.9375, largest, -largest, 2.0**smallest, -2.0**smallest, 2.0**(smallest + bits - 1),
                        2.0**31, -2.0**31, 2.0**63, -2.0**63, 1e5 + 0.25, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40]
        normal = self.random.normal(size=2 if few else 8)
        wide = self.random.normal(size=2 if few else 8) * np.exp2(self.random.uniform(smallest / 2, -smallest / 2, 2 if few else 8))
        return ref.round_to(dtype, np.concatenate([special, normal, wide]))


class PointwiseTest(Check):
    def grid(self, arity, dtypes):
        """One operand a dim: every combination of values."""
        arrays = []
        for i, dtype in enumerate(dtypes):
            x = self.values(dtype, few=arity > 2)
            arrays.append(x.reshape([-1 if d == i else 1 for d in range(arity)]))
        return arrays

    def check_ops(self, names, dtypes):
        state = self.random.bit_generator.state

        def build(graph, exact):
            self.random.bit_generator.state = state
            arrays = self.grid(len(dtypes), dtypes)
            operands = [(dtype, 2, x) for dtype, x in zip(dtypes, arrays)]
            inputs = [graph.input(dtype, x) for dtype, x in zip(dtypes, arrays)]
            for name in names:
                texts, values = list(inputs), list(operands)
                if name == "addcmul":
                    texts.append(graph.node("constant {value=3}" if dtypes[0] in ("bool",) + ref.INTEGERS else "constant {value=-1.5}"))
                    values.append(("i64", 0, np.array(3)) if dtypes[0] in ("bool",) + ref.INTEGERS else ("f64", 0, np.array(-1.5)))
                found = ref.pointwise(name, POINTWISE[name][2], values, exact)
                if found is not None:
                    result = graph.op(f"{name} {', '.join(texts)}")
                    graph.output(result, f"{name} of {dtypes}", *found, ref.LOOSE.get(name, 2e-15), name in ref.ANY_ZERO)

        self.evaluate(build)

    def test_every_op_on_every_dtype(self):
        for arity in (1, 2, 3):
            names = [n for n, row in POINTWISE.items() if (3 if n == "addcmul" else row[0]) == arity and n != "where"]
            for dtype in ref.DTYPES:
                with self.subTest(arity=arity, dtype=dtype):
                    self.check_ops(names, [dtype] * arity)
        for dtype in ref.DTYPES:
            self.check_ops(["where"], ["bool", dtype, dtype])

    def test_promotion_of_every_pair(self):
        """All dtypes × {dims, rank 0, scalar}, for one op a promotion."""
        kinds = list(itertools.product(ref.DTYPES, (2, 1, 0)))
        for first in kinds:
            with self.subTest(first=first):
                self.evaluate(lambda graph, exact: self.promote(graph, exact, first, kinds))

    @staticmethod
    def promote(graph, exact, first, kinds):
        def operand(dtype, category):
            x = ref.round_to(dtype, np.array(2.7182818)) if ref.is_float(dtype) else np.array(1 if dtype == "bool" else 2**24 + 3)
            x = x.reshape([1] if category == 2 else [])
            return graph.input(dtype, x, scalar=category == 0), (dtype, category, x)

        a, one = operand(*first)
        condition = graph.input("bool", np.array([1, 0]))
        for b, two in [operand(*k) for k in kinds]:
            what = f"{one[:2]}, {two[:2]}"
            for name in ("add", "truediv", "nextafter", "gcd", "bitwise_xor", "lt", "logical_and"):
                found = ref.pointwise(name, POINTWISE[name][2], [one, two], exact)
                if found is not None and one[1] + two[1] > 0:  # an output is a tensor
                    graph.output(graph.op(f"{name} {a}, {b}"), f"{name} of {what}", *found)
            # The condition counts among the operands: with dims, of the lowest kind.
            dtype = ref.common([("bool", 2), one[:2], two[:2]])
            values = [ref.cast(d, dtype, x, exact) for d, _, x in (one, two)]
            graph.output(graph.op(f"where {condition}, {a}, {b}"), f"where of {what}", dtype, np.where(np.array([True, False]), *values))

    def test_casts(self):
        def build(graph, exact):
            for source in ref.DTYPES:
                x = self.values(source)
                name = graph.input(source, x)
                for target in ref.DTYPES:
                    result = graph.op(f"cast {name} {{dtype={target}}}")
                    graph.output(result, f"cast {source} to {target}", target, ref.cast(source, target, x, exact), steps=0)

        self.evaluate(build)


class ReductionTest(Check):
    SHAPES = ([7], [3, 5, 4], [2, 1, 3, 2], [1, 6], [0, 3], [3, 0], [2, 0, 2], [1000])

    @staticmethod
    def dims_of(rank):
        return [dims for n in range(1, rank + 1) for dims in itertools.combinations(range(rank), n)]

    def array(self, dtype, shape, special):
        if dtype == "bool":
            return self.random.integers(0, 2, shape)
        if not ref.is_float(dtype):
            return self.random.choice(self.values(dtype), shape) if special else self.random.integers(-50, 50, shape)
        if special:
            return self.random.choice(self.values(dtype), shape)
        return ref.round_to(dtype, self.random.normal(size=shape) + 0.5)

    def sums(self, graph, exact, dtype, name, x):
        for dims, keepdim in itertools.product(self.dims_of(x.ndim) or [()], (False, True)):
            attributes = f"dims=[{','.join(map(str, dims))}]" + (", keepdim=true" if keepdim else "")
            for op in ("sum", "prod", "max", "min"):
                for out in (None, *(d for d in ref.DTYPES if d != "bool")) if op in ("sum", "prod") else (None,):
                    result = graph.op(f"{op} {name} {{{attributes + (f', dtype={out}' if out else '')}}}")
                    what, found = f"{op} {dtype}{list(x.shape)} {attributes} to {out}", ref.reduce(op, dtype, x, dims, keepdim, out)
                    total = self.condition(op, x, dims, found[1]) if ref.is_float(found[0]) else 0
                    if ref.is_float(found[0]) and not exact:
                        found = found[0], ref.round_to(found[0], found[1])
                    graph.output(result, what, *found, relative=1e-14 * total, any_zero=True)

    @staticmethod
    def condition(op, x, dims, result):
        """How much a sum's terms cancel: Σ|terms| over |sum|, at its worst."""
        if op != "sum" or x.size == 0:
            return 1 + x.size
        with np.errstate(all="ignore"):
            ratio = np.sum(np.abs(x.astype(np.float64)), axis=dims).ravel() / np.abs(result).ravel()
        return 1 + np.max(ratio, where=np.isfinite(ratio), initial=1)

    def test_sums_over_every_set_of_dims(self):
        for dtype, shape in itertools.product(ref.DTYPES, self.SHAPES + ([],)):
            with self.subTest(dtype=dtype, shape=shape):
                x = self.array(dtype, shape, special=False)
                self.evaluate(lambda g, exact: self.sums(g, exact, dtype, g.input(dtype, x), x))

    def test_sums_of_special_values(self):
        for dtype in ref.DTYPES:
            # Finite values of any size cancel arbitrarily: those of one element and max and min are exact, nan and inf spread.
            with self.subTest(dtype=dtype):
                x = self.array(dtype, [40, 1], special=True)
                self.evaluate(lambda g, exact: self.sums_over_one(g, exact, dtype, x))

    def sums_over_one(self, graph, exact, dtype, x):
        name = graph.input(dtype, x)
        for op, dims in itertools.product(("sum", "prod", "max", "min"), ((1,), (0,), (0, 1))):
            if op in ("sum", "prod") and dims != (1,) and ref.is_float(dtype):
                continue
            out, found = ref.reduce(op, dtype, x, dims, False)
            result = graph.op(f"{op} {name} {{dims=[{','.join(map(str, dims))}]}}")
            graph.output(result, f"{op} {dtype} over {dims}", out, found, any_zero=True)
        if ref.is_float(dtype):
            y = np.where(np.isfinite(x), np.sign(x), x)
            spread = graph.op(f"sum {graph.input(dtype, y)} {{dims=[0]}}")
            graph.output(spread, f"sum {dtype} of inf and nan", dtype, ref.reduce("sum", dtype, y, (0,), False)[1], any_zero=True)

    def test_moments(self):
        for dtype, shape in itertools.product(ref.DTYPES, self.SHAPES):
            with self.subTest(dtype=dtype, shape=shape):
                x = self.array(dtype, shape, special=False)
                self.evaluate(lambda g, exact: self.moments(g, exact, dtype, x))

    def moments(self, graph, exact, dtype, x):
        name = graph.input(dtype, x)

        def output(result, what, out, value):
            near = {"relative": 1e-12, "any_zero": True}
            graph.output(result, f"{what} of {dtype}{list(x.shape)}", out, value if exact else ref.round_to(out, value), **near)

        for dims, keepdim, correction in itertools.product(self.dims_of(x.ndim), (False, True), (0, 1, 2)):
            out, variance, mean, squares, count = ref.moments(dtype, x, dims, keepdim, correction, exact)
            listed = f"dims=[{','.join(map(str, dims))}]"
            attributes = f"{listed}, keepdim={str(keepdim).lower()}, correction={correction}"
            output(graph.op(f"var {name} {{{attributes}}}"), f"var {attributes}", out, variance)
            var, mean_name = graph.op(f"var_mean {name} {{{attributes}}}", 2)
            output(var, f"var_mean {attributes}", out, variance)
            output(mean_name, f"mean {attributes}", out, mean)
            if not keepdim and correction == 0:
                names = graph.op(f"welford {name} {{{listed}}}", 3)
                output(names[0], f"welford mean {listed}", out, mean)
                output(names[1], f"welford squares {listed}", out, squares)
                graph.output(names[2], f"welford count {listed}", "i64", count)


class ShapeTest(Check):
    def check_on_every_dtype(self, shape, nodes):
        """nodes(graph, name) gives (result, function of NumPy) pairs."""
        def build(graph, exact):
            for dtype in ref.DTYPES:
                x = self.random.choice(self.values(dtype), shape)
                name = graph.input(dtype, x)
                for result, function in nodes(graph, name):
                    graph.output(result, f"{graph.lines[-1]} of {dtype}{shape}", dtype, function(x), steps=0)

        self.evaluate(build)

    def test_broadcast_and_squeeze(self):
        def nodes(graph, name):
            flags = "[true,false,true,false]"
            wide = graph.op(f"broadcast {name} {{is_broadcast_dim={flags}}}")
            yield wide, lambda x: x[None, :, None, :]
            yield graph.op(f"squeeze {wide} {{dims=[2]}}"), lambda x: x[None]
            yield graph.op(f"squeeze {wide} {{dims=[0,2]}}"), lambda x: x

        for shape in ([3, 4], [1, 5], [0, 2]):
            self.check_on_every_dtype(shape, nodes)

    def test_expand(self):
        self.check_on_every_dtype([3, 1, 1], lambda g, n: [
            (g.op(f"expand {n} {{shape=[3,4,2]}}"), lambda x: np.broadcast_to(x, (3, 4, 2))),
            (g.op(f"expand {n} {{shape=[-1,1,5]}}"), lambda x: np.broadcast_to(x, (3, 1, 5))),
            (g.op(f"expand {n} {{shape=[3,0,5]}}"), lambda x: np.broadcast_to(x, (3, 0, 5)))])

    def test_broadcast_in_dim(self):
        self.check_on_every_dtype([3, 1], lambda g, n: [
            (g.op(f"broadcast_in_dim {n} {{shape=[2,3,4], broadcast_dims=[1,2]}}"), lambda x: np.broadcast_to(x, (2, 3, 4))),
            (g.op(f"broadcast_in_dim {n} {{shape=[3,2,4], broadcast_dims=[0,1]}}"), lambda x: np.broadcast_to(x[:, :, None], (3, 2, 4))),
            (g.op(f"broadcast_in_dim {n} {{shape=[3,2,1], broadcast_dims=[0,2]}}"), lambda x: np.broadcast_to(x[:, None, :], (3, 2, 1)))])

    def test_permute(self):
        for shape in ([2, 3, 4], [0, 2, 3], [1, 4, 1]):
            self.check_on_every_dtype(shape, lambda g, n: [
                (g.op(f"permute {n} {{dims=[{','.join(map(str, dims))}]}}"), lambda x, dims=dims: x.transpose(dims))
                for dims in itertools.permutations(range(3))])

    def test_slice(self):
        last = 2**63 - 1
        for shape, starts, ends in (([3, 4], [1, 0], [3, 2]), ([5, 2], [2, 1], [last, last]), ([4, 3], [0, 2], [4, 2]), ([2, 3], [last, 0], [last, 3]),
                                    ([6], [1], [5])):
            self.check_on_every_dtype(shape, lambda g, n, at=(starts, ends): [
                (g.op(f"slice {n} {{start_indices={at[0]}, end_indices={at[1]}}}".replace(", ", ",").replace("],end", "], end")),
                 lambda x: x[tuple(slice(*pair) for pair in zip(*at))])])

    def test_reshape(self):
        self.check_on_every_dtype([2, 3, 4], lambda g, n: [
            (g.op(f"reshape {n} {{shape=[{','.join(map(str, shape))}]}}"), lambda x, shape=shape: x.reshape(shape))
            for shape in ([6, 4], [24], [2, 1, 12], [4, 3, 2], [8, 3])])
        self.check_on_every_dtype([0, 3], lambda g, n: [(g.op(f"reshape {n} {{shape=[3,0,5]}}"), lambda x: x.reshape(3, 0, 5))])
        self.check_on_every_dtype([1, 1], lambda g, n: [(g.op(f"reshape {n} {{shape=[]}}"), lambda x: x.reshape(()))])

    def test_triu(self):
        for shape in ([4, 6], [2, 5, 3]):
            self.check_on_every_dtype(shape, lambda g, n: [
                (g.op(f"triu {n} {{diagonal={k}}}"), lambda x, k=k: np.triu(x, k)) for k in (-2, 0, 1, 9, -(2**62))])

    def test_pad(self):
        for source, shape, widths in (("f32", [3, 4], [1, 2, 0, 3]), ("f64", [3, 4], [-1, 2, 1, -2]), ("i64", [2, 3], [2, 0]), ("bool", [0, 2], [1, 1, 2, 0]),
                                      ("bf16", [3], [-2, -1])):
            def build(graph, exact, source=source, shape=shape, widths=widths):
                for dtype in ref.DTYPES:
                    x, value = self.random.choice(self.values(dtype), shape), self.random.choice(self.values(source), 1)
                    name, fill = graph.input(dtype, x), graph.input(source, value.reshape(()), scalar=True)
                    result = graph.op(f"pad {name}, {fill} {{pad_widths=[{','.join(map(str, widths))}]}}")
                    pairs = [(0, 0)] * (len(shape) - len(widths) // 2) + list(zip(widths[::2], widths[1::2]))[::-1]
                    cut = x[tuple(slice(max(0, -low), n - max(0, -high)) for n, (low, high) in zip(shape, pairs))]
                    expected = np.pad(cut, [(max(0, low), max(0, high)) for low, high in pairs],
                                      constant_values=ref.cast(source, dtype, value, exact)[0])
                    graph.output(result, f"pad of {dtype}{shape} with {source}", dtype, expected, steps=0)

            self.evaluate(build)

    def test_cat(self):
        for dim in (0, 1):
            def build(graph, exact, dim=dim):
                for dtype in ref.DTYPES:
                    shapes = [[3, 4], [3, 4], [3, 4]]
                    for i, extent in enumerate((2, 0, 5)):
                        shapes[i][dim] = extent
                    arrays = [self.random.choice(self.values(dtype), shape) for shape in shapes]
                    names = [graph.input(dtype, x) for x in arrays]
                    graph.output(graph.op(f"cat {', '.join(names)} {{dims=[{dim}]}}"), f"cat of {dtype}", dtype, np.concatenate(arrays, dim), steps=0)

            self.evaluate(build)

    def take(self, op, shape, index_shape, dim, function):
        """Indices reach out of range on both sides; function(x, in-range indices) is cut to 0 there."""
        def build(graph, exact):
            for dtype, kind in itertools.product(ref.DTYPES, ("i32", "i64")):
                x = self.random.choice(self.values(dtype), shape)
                index = self.random.integers(-2, shape[dim] + 2, index_shape)
                index.reshape(-1)[:2] = (2**31 - 1, -(2**31)) if kind == "i32" else (2**63 - 1, -(2**63))
                inside = (index >= 0) & (index < shape[dim])
                taken, there = function(x, np.where(inside, index, 0), inside)
                result = graph.op(f"{op} {graph.input(dtype, x)}, {graph.input(kind, index)} {{dims=[{dim}]}}")
                graph.output(result, f"{op} of {dtype}{shape} at {kind}{list(index_shape)}", dtype, np.where(there, taken, 0), steps=0)

        self.evaluate(build)

    def test_index_select(self):
        for dim in (0, 1, 2):
            def select(x, index, inside, dim=dim):
                return np.take(x, index, dim), inside.reshape([-1 if d == dim else 1 for d in range(3)])
            self.take("index_select", [3, 4, 5], [7], dim, select)

    def test_gather(self):
        def gather(dim):
            def at(x, index, inside):
                places = list(np.indices(index.shape))
                places[dim] = index
                return x[tuple(places)], inside
            return at
        self.take("gather", [3, 4], [2, 4], 1, gather(1))
        self.take("gather", [3, 4], [6, 3], 0, gather(0))

    def test_take_along_axis(self):
        def along(dim):
            return lambda x, index, inside: (np.take_along_axis(x, index, dim), inside)
        self.take("take_along_axis", [3, 4], [3, 6], 1, along(1))
        self.take("take_along_axis", [3, 4], [1, 6], 1, along(1))
        self.take("take_along_axis", [1, 4], [5, 2], 1, along(1))

    def test_iota(self):
        def build(graph, exact):
            size = graph.op(f"size {graph.input('bf16', np.zeros([5]))} {{dims=[0]}}")
            for source, target in itertools.product(("i64", "f32", "f64"), (d for d in ref.DTYPES if d != "bool")):
                for start, step in ((0, 1), (-3, 2), (7, -1)):
                    names = [graph.input(source, np.array(v), scalar=True) for v in (start, step)]
                    result = graph.op(f"iota {names[0]}, {names[1]}, {size} {{dtype={target}, shape=[-1]}}")
                    graph.output(result, f"iota of {source} as {target}", target, start + step * np.arange(5), steps=0)

        self.evaluate(build)

    def test_size_and_full(self):
        def build(graph, exact):
            tensor = graph.input("bf16", np.zeros([4, 3]))
            sizes = [graph.op(f"size {tensor} {{dims=[{d}]}}") for d in (0, 1)]
            for source, target in itertools.product(("bool", "i64", "f64", "f32", "i32"), ref.DTYPES):
                for x in self.random.choice(self.values(source), 6):
                    value = np.array(x)
                    name = graph.input(source, value, scalar=True)
                    result = graph.op(f"full {name}, {sizes[1]}, {sizes[0]} {{dtype={target}, shape=[-1,2,-1]}}")
                    expected = np.full([3, 2, 4], ref.cast(source, target, value.reshape([1]), exact)[0])
                    graph.output(result, f"full of {source} {x!r}", target, expected, steps=0)

        self.evaluate(build)


class RandomTest(Check):
    def test_words_are_those_of_the_paper(self):
        """The known answers of Random123's kat_vectors."""
        self.assertEqual(ref.philox((0, 0, 0, 0), (0, 0)), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8))
        ones = 0xFFFFFFFF
        self.assertEqual(ref.philox((ones, ones, ones, ones), (ones, ones)), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD))
        self.assertEqual(ref.philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)),
                         (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))

    def test_draws(self):
        seeds = [(0, 0), (1, 4), (-1, 1 << 40), tuple(map(int, self.random.integers(-(1 << 63), 1 << 63, 2)))]

        def build(graph, exact):
            for (seed, offset), dtype, shape in itertools.product(seeds, ("f16", "bf16", "f32", "f64"), ([5], [3, 2, 4], [], [0, 3])):
                state = [graph.input("i64", np.array(seed), scalar=True), graph.input("i64", np.array([offset] if shape else offset), scalar=not shape)]
                drawn = ", ".join(state)
                like = graph.input(dtype, np.zeros(shape))
                extents = "[" + ",".join(map(str, shape)) + "]"
                for normal in (False, True):
                    unit = ref.draws(dtype, shape, seed, offset, normal, exact)
                    name = "randn_like" if normal else "rand_like"
                    # Sums and differences of doubles may differ by the C library's functions alone.
                    self.placed(graph, graph.op(f"{name} {like}, {drawn}"), name, dtype, unit, exact)
                    name = "normal" if normal else "uniform"
                    begin, end = (graph.node(f"constant {{value={v}}}") for v in (-1.5, 0.25))
                    scale = 0.25 if normal else 1.75
                    keep = (lambda x: x) if exact or dtype == "f64" else (lambda x: ref.round_to("f32", x))
                    value = keep(keep(unit * scale) - 1.5)
                    self.placed(graph, graph.op(f"{name} {begin}, {end}, {drawn} {{dtype={dtype}, shape={extents}}}"), name, dtype, value, exact)

        self.evaluate(build)

    @staticmethod
    def placed(graph, result, name, dtype, x, exact):
        graph.output(result, f"{name} of {dtype}", dtype, x if exact else ref.round_to(dtype, x), relative=1e-13, steps=2)

    def test_statistics(self):
        """Of fixed seeds, so that the answer does not change from run to run."""
        for dtype, normal in itertools.product(("f32", "f64"), (False, True)):
            graph = Graph()
            low, high = (graph.node(f"constant {{value={v}.0}}") for v in (0, 1))
            seed, offset = (graph.node(f"constant {{value={v}}}") for v in (12345, 1 << 33))
            name = "normal" if normal else "uniform"
            drawn = graph.op(f"{name} {low}, {high}, {seed}, {offset} {{dtype={dtype}, shape=[1000,1000]}}")
            graph.output(drawn, name, dtype, np.zeros([1000, 1000]))
            with tempfile.TemporaryDirectory() as folder:
                _, data = graph.run(folder, exact=False)
            x = ref.decode(dtype, data, [1000 * 1000])
            law = scipy.stats.norm if normal else scipy.stats.uniform
            self.assertGreater(scipy.stats.kstest(x, law.cdf).pvalue, 1e-3, (dtype, name))
            # Neighbours, and lanes of one block, are independent.
            for lag in (1, 2, 3, 4):
                self.assertLess(abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]), 4e-3, (dtype, name, lag))
            self.assertAlmostEqual(x.mean(), law.mean(), delta=4e-3)
            self.assertAlmostEqual(x.std(), law.std(), delta=4e-3)
            if not normal:
                self.assertTrue(np.all((x >= 0) & (x < 1)))


class ZCoverageTest(unittest.TestCase):
    """Runs last, by its name."""

    def test_every_op_of_the_table_was_evaluated(self):
        self.assertEqual(sorted(set(OPS) - COVERED), [])


if __name__ == "__main__":
    print(f"FUSIOND_TEST_SEED={SEED}", flush=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
