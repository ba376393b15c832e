"""What every op means, in NumPy, SciPy and Python integers.

Written from the op table's documentation, the promotion rules of compiler/ir/README.md and the semantics of compiler/device/README.md; shares no code
with the evaluator. An array holds the elements of any float type as float64, of any other type as int64 (bool as 0 and 1).
"""
import math

import numpy as np
import scipy.special

DTYPES = ("bool", "i32", "i64", "f16", "bf16", "f32", "f64")
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i32", "i64")
STORAGE = {"bool": "u1", "i32": "i4", "i64": "i8", "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8"}
WIDTH = {"bool": 1, "i32": 32, "i64": 64}
# Bits of precision, exponent of the smallest step, largest value.
FORMAT = {"bf16": (8, -133, float.fromhex("0x1.FEp127")), "f16": (11, -24, 65504.0),
          "f32": (24, -149, float.fromhex("0x1.FFFFFEp127")), "f64": (53, -1074, np.finfo("f8").max)}


def is_float(dtype):
    return dtype in FLOATS


# ---- Elements.

def step(dtype, x):
    """The distance of neighbours at x in the type."""
    bits, smallest, _ = FORMAT[dtype]
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))
    return np.ldexp(1.0, np.maximum(exponent - bits, smallest))


def round_to(dtype, x):
    """Nearest value of a float type, ties to even."""
    if dtype == "f64":
        return x
    quantum = step(dtype, x)
    with np.errstate(over="ignore"):
        rounded = np.where(np.isfinite(x), np.rint(x / quantum) * quantum, x)
    return np.where(np.isfinite(x) & (np.abs(rounded) > FORMAT[dtype][2]), np.copysign(np.inf, x), np.copysign(rounded, x))


def wrap(dtype, x):
    """Python integers or int64 to an integer type."""
    x = np.asarray(x)
    if dtype == "bool":
        return np.not_equal(x, 0).astype(np.int64)
    half = 1 << (WIDTH[dtype] - 1)
    wrapped = [(int(v) + half) % (2 * half) - half for v in x.ravel()]
    return np.array(wrapped, np.int64).reshape(x.shape)


def encode(dtype, x):
    if dtype == "bf16":
        return (round_to("bf16", x).astype("f4").view("u4") >> 16).astype("u2").tobytes()
    return x.astype(STORAGE[dtype]).tobytes()


def decode(dtype, data, shape):
    x = np.frombuffer(data, STORAGE[dtype])
    if dtype == "bf16":
        x = (x.astype("u4") << 16).view("f4")
    return x.astype(np.float64 if is_float(dtype) else np.int64).reshape(shape)


def to_integer(source, target, x):
    """A float array as bool, i32 or i64: truncates, saturates; nan as the device's cvt makes it."""
    if target == "bool":
        return (x != 0).astype(np.int64)  # nan included
    low, high = -(1 << (WIDTH[target] - 1)), (1 << (WIDTH[target] - 1)) - 1
    of_nan = 0 if target == "i32" and source != "f64" else low
    exact = [of_nan if np.isnan(v) else high if v >= high else low if v <= low else int(v) for v in x.ravel()]
    return np.array(exact, dtype=np.int64).reshape(x.shape)


def cast(source, target, x, exact=False):
    """exact: the evaluator's double precision, in which floats are not rounded."""
    if not is_float(target):
        return to_integer(source, target, x) if is_float(source) else wrap(target, x)
    if not is_float(source) and target != "f64" and not exact:
        x = x.astype(np.float32)  # rounded once
    x = x.astype(np.float64)
    if exact:
        return x
    if target in ("f16", "bf16") and source == "f64":
        x = round_to("f32", x)
    return round_to(target, x)


# ---- Promotion. An operand is (dtype, category); category 2 = tensor with dims, 1 = rank 0, 0 = scalar.

def kind(dtype):
    return 0 if dtype == "bool" else 1 if dtype in INTEGERS else 2


def wider(a, b):
    if kind(a) != kind(b):
        return max(a, b, key=kind)
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    return max(a, b, key=DTYPES.index)


def common(operands):
    top = max(category for _, category in operands)
    result = None
    for category in (2, 1, 0):
        joined = None
        for dtype in (d for d, c in operands if c == category):
            joined = dtype if joined is None else wider(joined, dtype)
        if joined is None:
            continue
        if category == top:
            result = joined if top > 0 else ("bool", "i64", "f64")[kind(joined)]
        elif kind(joined) > kind(result):
            result = joined if category == 1 else ("bool", "i64", "f32")[kind(joined)]
    return result


def types(promotion, operands):
    """(compute type, result type), or None where the op does not take these dtypes."""
    dtype = common(operands[1:] if promotion == "kSelect" else operands)
    compute = "f32" if dtype in ("f16", "bf16") else dtype
    if promotion == "kFloatResult" and not is_float(compute):
        compute = "f32" if any(category for _, category in operands) else "f64"
    if promotion in ("kArithmetic", "kFloatResult"):
        return compute, compute
    if promotion in ("kComparison", "kPredicate"):
        return compute, "bool"
    if promotion == "kLogical":
        return "bool", "bool"
    if promotion in ("kSameType", "kSelect"):
        return (dtype, dtype) if promotion == "kSameType" or operands[0][0] == "bool" else None
    if promotion == "kFloatOnly":
        return (dtype, dtype) if dtype in ("f32", "f64") else None
    if promotion == "kIntegral":
        return (dtype, dtype) if dtype in INTEGERS else None
    if promotion == "kBitwise":
        return None if is_float(dtype) else (dtype, dtype)
    raise ValueError(promotion)


# ---- Pointwise ops on float64 arrays.

def _lerp(a, b, w):
    return np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))


def _lgamma(a):
    """gammaln, with its series at 1 and 2, where SciPy's cancels."""
    x, y = a - 1, a - 2
    near1 = -np.euler_gamma * x + math.pi**2 / 12 * x**2 - scipy.special.zeta(3) / 3 * x**3
    near2 = (1 - np.euler_gamma) * y + (math.pi**2 / 12 - 0.5) * y**2 - (scipy.special.zeta(3) - 1) / 3 * y**3
    far = np.where(np.isinf(a), np.inf, scipy.special.gammaln(a))
    return np.where(np.abs(x) < 1e-4, near1, np.where(np.abs(y) < 1e-4, near2, far))


def _clamp(a, low, high):
    return np.where(np.isnan(a), a, np.fmin(np.fmax(a, low), high))


FLOAT = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "erf": scipy.special.erf, "erfc": scipy.special.erfc, "erfcinv": scipy.special.erfcinv,
    "erfinv": scipy.special.erfinv, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "frac": lambda a: a - np.trunc(a),
    "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "isneginf": np.isneginf, "isposinf": np.isposinf,
    "isreal": lambda a: np.ones(a.shape, bool), "lgamma": _lgamma, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "neg": np.negative, "real": np.positive, "reciprocal": lambda a: 1 / a, "relu": lambda a: np.maximum(a, 0),
    "round": np.rint, "rsqrt": lambda a: 1 / np.sqrt(a), "segment_set": np.positive, "set": np.positive, "sigmoid": scipy.special.expit,
    "sign": lambda a: np.where(np.isnan(a), 0, np.sign(a)), "signbit": np.signbit,
    "silu": lambda a: np.where(np.isneginf(a), np.nan, a * scipy.special.expit(a)), "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "add": np.add, "atan2": np.arctan2, "div": np.divide, "truediv": np.divide, "eq": np.equal, "ne": np.not_equal, "ge": np.greater_equal,
    "gt": np.greater, "le": np.less_equal, "lt": np.less, "fmod": np.fmod, "mod": np.fmod, "maximum": np.maximum, "minimum": np.minimum,
    "mul": np.multiply, "nextafter": np.nextafter, "pow": np.power, "remainder": np.remainder, "sub": np.subtract,
    "addcmul": lambda a, b, c, d: a + d * b * c, "clamp": _clamp, "lerp": _lerp,
    "threshold": lambda a, b, c: np.where(a <= b, c, a), "where": lambda a, b, c: np.where(a != 0, b, c),
}
# Relative error allowed where NumPy's, SciPy's and the C library's double functions differ by more than a few units in the last place.
LOOSE = {"lgamma": 1e-10, "erfinv": 1e-13, "erfcinv": 1e-12, "pow": 1e-13, "sinh": 1e-14, "cosh": 1e-14, "tan": 1e-14}
# Ops whose result may be either zero.
ANY_ZERO = {"maximum", "minimum", "clamp", "relu", "remainder", "threshold", "lerp", "sign", "frac", "lgamma", "erfinv", "erfcinv"}


# ---- Pointwise ops on Python integers of a given width.

def _div(a, b):
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _mod(a, b):
    return a if b == 0 else a - _div(a, b) * b


def _pow(a, b):
    if b >= 0:
        return pow(a, b, 1 << 64)
    return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)


def philox(counter, key):
    """Philox4x32-10 as its paper defines it, on Python integers."""
    mask = 0xFFFFFFFF
    a, b, c, d = counter
    k, l = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ k, second & mask, (first >> 32) ^ d ^ l, first & mask
        k, l = (k + 0x9E3779B9) & mask, (l + 0xBB67AE85) & mask
    return a, b, c, d


def random_word(index, seed, offset):
    index, seed, offset = (v % 2**64 for v in (index, seed, offset))
    block = (index // 4 + offset // 4) % 2**64
    return philox((block % 2**32, block >> 32, 0, 0), (seed % 2**32, seed >> 32))[index % 4]


def draws(dtype, shape, seed, offset, normal, exact):
    """What uniform over [0, 1) and normal with mean 0 and deviation 1 give, before they are placed."""
    count = math.prod(shape)
    wide = dtype == "f64"
    keep = (lambda x: x) if exact or wide else (lambda x: round_to("f32", x))

    def words(first, n):
        return np.array([random_word(i, seed, offset) for i in range(first, first + n)], np.float64)

    if not normal:
        if not wide:
            return (words(0, count) // 256 * 2.0**-24).reshape(shape)
        both = words(0, 2 * count).reshape(-1, 2)
        return ((both[:, 0] // 32 * 2.0**26 + both[:, 1] // 64) * 2.0**-53).reshape(shape)
    pairs = (count + 1) // 2
    if wide:
        block = words(0, 4 * pairs).reshape(-1, 4)
        u = 1 - (block[:, 0] // 32 * 2.0**26 + block[:, 1] // 64) * 2.0**-53
        v = (block[:, 2] // 32 * 2.0**26 + block[:, 3] // 64) * 2.0**-53
    else:
        pair = words(0, 2 * pairs).reshape(-1, 2)
        u, v = keep(keep(pair[:, 0] + 1) * 2.0**-32), keep(keep(pair[:, 1]) * 2.0**-32)
    radius = keep(np.sqrt(keep(keep(np.log(u)) * -2)))
    angle = keep(v * keep(np.array(2 * np.pi)))
    both = np.stack([keep(radius * keep(np.cos(angle))), keep(radius * keep(np.sin(angle)))], 1)
    return both.reshape(-1)[:count].reshape(shape)


def _shift(function, out):
    return lambda width: lambda a, b: function(a, b, width) if 0 <= b < width else out(a)


INTEGER = {
    "abs": abs, "bitwise_not": lambda a: ~a, "ceil": int, "floor": int, "round": int, "trunc": int, "real": int, "set": int,
    "segment_set": int, "frac": lambda a: 0, "isfinite": lambda a: 1, "isreal": lambda a: 1, "isinf": lambda a: 0, "isnan": lambda a: 0,
    "isneginf": lambda a: 0, "isposinf": lambda a: 0, "logical_not": lambda a: a == 0, "neg": lambda a: -a, "relu": lambda a: max(a, 0),
    "sign": lambda a: (a > 0) - (a < 0), "signbit": lambda a: a < 0,
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": _div, "mod": _mod, "fmod": _mod,
    "remainder": lambda a, b: a if b == 0 else a % b, "pow": _pow, "gcd": math.gcd, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b, "gt": lambda a, b: a > b, "le": lambda a, b: a <= b, "lt": lambda a, b: a < b, "maximum": max, "minimum": min,
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b, "bitwise_xor": lambda a, b: a ^ b,
    "logical_and": lambda a, b: a != 0 and b != 0, "logical_or": lambda a, b: a != 0 or b != 0,
    "random_bits": random_word,
    "addcmul": lambda a, b, c, d: a + d * b * c, "clamp": lambda a, low, high: min(max(a, low), high), "lerp": lambda a, b, w: a + w * (b - a),
    "threshold": lambda a, b, c: c if a <= b else a, "where": lambda a, b, c: b if a else c,
}
SHIFTS = {
    "bitwise_left_shift": _shift(lambda a, b, _: a << b, lambda a: 0),
    "bitwise_right_shift": _shift(lambda a, b, _: a >> b, lambda a: -(a < 0)),
    "logical_right_shift": _shift(lambda a, b, width: (a % (1 << width)) >> b, lambda a: 0),
}


def pointwise(op, promotion, operands, exact=False):
    """operands: (dtype, category, array). Returns (dtype, array), or None where the op does not take the dtypes."""
    found = types(promotion, [(dtype, category) for dtype, category, _ in operands])
    if found is None:
        return None
    compute, result = found
    values = [cast(dtype, "bool" if op == "where" and i == 0 else compute, x, exact) for i, (dtype, _, x) in enumerate(operands)]
    if is_float(compute):
        with np.errstate(all="ignore"):
            if op == "nextafter" and compute == "f32":
                values = [v.astype("f4") for v in values]
            out = FLOAT[op](*values)
        if result == "bool":
            return result, out.astype(np.int64)
        out = np.asarray(out, np.float64)
        return result, out if exact else round_to(result, out)
    function = SHIFTS[op](WIDTH[compute]) if op in SHIFTS else INTEGER[op]
    if compute == "bool" and op == "bitwise_not":
        function = INTEGER["logical_not"]
    python = [v.astype(object) for v in values]
    return result, wrap(result, np.frompyfunc(function, len(python), 1)(*python))


# ---- Reductions.

def reduce(op, dtype, x, dims, keepdim, out=None):
    """sum, prod, max, min: (result dtype, exact result or wrapped integers)."""
    if op in ("max", "min"):
        out = dtype
        low, high = (-np.inf, np.inf) if is_float(dtype) else (0, 1) if dtype == "bool" else (-(1 << (WIDTH[dtype] - 1)), (1 << (WIDTH[dtype] - 1)) - 1)
        function, initial = (np.max, low) if op == "max" else (np.min, high)
        return out, function(x, axis=dims, keepdims=keepdim, initial=initial)
    out = out or (dtype if is_float(dtype) else "i64")
    function = np.sum if op == "sum" else np.prod
    with np.errstate(all="ignore"):
        if is_float(out):
            return out, np.asarray(function(x.astype(np.float64), axis=dims, keepdims=keepdim))
        terms = cast(dtype, out, x).astype(np.int64)
        return out, wrap(out, function(terms, axis=dims, keepdims=keepdim))


def moments(dtype, x, dims, keepdim, correction, exact):
    """(result dtype, variance, mean, sum of squared deviations, count)."""
    out = types("kFloatResult", [(dtype, 2)])[1]
    x = cast(dtype, out, x, exact)
    count = int(np.prod([x.shape[d] for d in dims], dtype=np.int64))
    with np.errstate(all="ignore"):
        mean = np.sum(x, axis=dims, keepdims=True) / np.float64(count)
        squares = np.sum((x - mean) ** 2, axis=dims, keepdims=keepdim)
        variance = squares / np.float64(max(0, count - correction))
    return out, variance, mean.reshape(squares.shape), squares, np.full(squares.shape, count, np.int64)
