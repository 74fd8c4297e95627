"""The scalar ops of arith and math: their semantics (docs/numerics.md) and error bounds.

Floats are given as arrays of float64, integers as arrays of Python ints (dtype object), sign-extended."""
import math

import numpy as np

FLOATS = {"f64": (np.float64, 53, -1022), "f32": (np.float32, 24, -126), "f16": (np.float16, 11, -14),
          "bf16": (None, 8, -126)}
INTEGERS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
DTYPES = (*FLOATS, *INTEGERS)


# ----- Elements -------------------------------------------------------------------------------------------------------

def round_to(dtype, values):
    """float64 to the nearest value of a type, ties to even."""
    values = np.asarray(values, np.float64)
    if dtype == "f64":
        return values
    if dtype != "bf16":
        return values.astype(FLOATS[dtype][0]).astype(np.float64)
    _, digits, least = FLOATS[dtype]
    exponent = np.frexp(values)[1]
    unit = np.ldexp(1.0, np.maximum(exponent, least + 1) - digits)
    rounded = np.where(np.isfinite(values), np.rint(values / unit) * unit, values)
    return np.where(np.abs(rounded) > 3.3895313892515355e38, np.copysign(np.inf, values), rounded)


def through_f32(dtype, values):
    """The result of f32 arithmetic in a narrower type."""
    return round_to(dtype, values if dtype == "f64" else round_to("f32", values))


def wrap(dtype, values):
    """Integers modulo 2^width, sign-extended."""
    half = 1 << (INTEGERS[dtype] - 1)
    return np.array([(int(v) + half) % (2 * half) - half for v in values], dtype=object)


def unsigned(dtype, values):
    return np.array([int(v) % (1 << INTEGERS[dtype]) for v in values], dtype=object)


def encode(values, dtype):
    """The values as the array in a file."""
    if dtype == "bf16":
        return (np.asarray(values, np.float64).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype in FLOATS:
        return np.asarray(values, np.float64).astype(FLOATS[dtype][0])
    if dtype == "i1":
        return np.array([bool(v) for v in values])
    return np.array([int(v) for v in values], np.int64).astype(f"i{INTEGERS[dtype] // 8}")


def decode(array, dtype):
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in FLOATS:
        return array.astype(np.float64)
    return np.array([-int(v) if dtype == "i1" else int(v) for v in array], dtype=object)


def dense(array, dtype):
    """A constant of MLIR."""
    if dtype == "i1":
        return "dense<[" + ", ".join("true" if v else "false" for v in array) + "]>"
    return 'dense<"0x' + array.tobytes().hex().upper() + '">'


def parse(text, dtype):
    """The interpreter's text of a tensor of rank 1."""
    words = text.strip().strip("[]").split(",")
    if dtype in FLOATS:
        return np.array([float(word) for word in words])
    return np.array([-int(word == "true") if dtype == "i1" and not word.strip().lstrip("-").isdigit() else int(word)
                     for word in (w.strip() for w in words)], dtype=object)


def shown(value, dtype):
    return repr(float(value)) if dtype in FLOATS else str(value)


def order(values, dtype):
    """Numbers of float values, so that neighbors differ by 1; both zeros are 0."""
    _, digits, least = FLOATS[dtype]
    fraction, exponent = np.frexp(np.abs(values))
    exponent = np.maximum(exponent, least + 1)
    steps = np.rint(np.ldexp(np.abs(values), digits - exponent)).astype(object)
    binade = 1 << (digits - 1)
    number = np.array([0 if v == 0 else int(s) + (int(e) - (least + 1)) * binade
                       for v, s, e in zip(values, steps, exponent)], dtype=object)
    return np.where(np.signbit(values), -number, number)


NAN, SIGN = 1 << 70, 1 << 69


def differing(actual, expected, dtype, ulps, loose_zero, flushes):
    """The place of the worst difference beyond `ulps`, the number of such, and its size; None if there is none."""
    if dtype not in FLOATS:
        wrong = np.flatnonzero([a != e for a, e in zip(actual, expected)])
        return (wrong[0], len(wrong), "-") if len(wrong) else None
    top = {"f64": np.finfo(np.float64).max, "f32": np.finfo(np.float32).max, "f16": 65504.0,
           "bf16": 3.3895313892515355e38}[dtype]
    limit = order(np.array([top]), dtype)[0] + 1
    def places(values):
        finite = order(np.where(np.isfinite(values), values, 0), dtype)
        return np.where(np.isinf(values), np.where(values > 0, limit, -limit), finite)
    distance = np.abs(places(actual) - places(expected))
    if flushes:
        tiny = (actual == 0) & (np.abs(expected) < math.ldexp(1, FLOATS[dtype][2]))
        distance = np.where(tiny, 0, distance)
    nan = np.isnan(actual) | np.isnan(expected)
    distance = [(0 if a != a and e != e else NAN) if n else d for n, d, a, e in zip(nan, distance, actual, expected)]
    if not loose_zero:
        zeros = (actual == 0) & (expected == 0) & (np.signbit(actual) != np.signbit(expected))
        distance = [SIGN if z else d for z, d in zip(zeros, distance)]
    wrong = [i for i, d in enumerate(distance) if d > ulps]
    if not wrong:
        return None
    at = max(wrong, key=lambda i: distance[i])
    return at, len(wrong), {NAN: "NaN", SIGN: "sign of 0"}.get(distance[at], distance[at])


# ----- Values ---------------------------------------------------------------------------------------------------------

EXPONENTS = np.array([0, 1, -1, 2, -2, 3, -3, 7, 31, -64, 2147483647, -2147483647, -2147483648], dtype=object)


def edge_values(dtype):
    if dtype == "i1":
        return np.array([0, -1], dtype=object)
    if dtype in INTEGERS:
        width = INTEGERS[dtype]
        top = (1 << (width - 1)) - 1
        values = [0, 1, -1, 2, -2, 3, 7, -7, 100, -100, width - 1, width, width + 1, top, top - 1, -top, -top - 1]
        if width > 8:
            values += [1000, 12345]
        return np.array(sorted(set(values)), dtype=object)
    _, digits, least = FLOATS[dtype]
    smallest, normal = math.ldexp(1, least - digits + 1), math.ldexp(1, least)
    largest = {"f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "f16": 65504.0,
               "bf16": 3.3895313892515355e38}[dtype]
    values = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.9999, -3, 7.25, 88.5, -88.5, 720, -745, 1e-8, 1e-3,
              100.7, -129, 127.5, 32767.5, 2147483647.0, -2147483648.0, 4294967296.0, 9.2e18, -9.3e18, 1.9e19,
              smallest, -smallest, 3 * smallest, normal, -normal, normal - smallest, normal / 3, largest, -largest,
              math.inf, -math.inf, math.nan]
    rounded = round_to(dtype, [v for v in values])
    unique = []
    for v in rounded:
        if not any(v == u and math.copysign(1, v) == math.copysign(1, u) or (v != v and u != u) for u in unique):
            unique.append(float(v))
    return np.array(unique)


def random_values(dtype, seed):
    """Floats of moderate size."""
    random = np.random.default_rng(seed)
    values = np.exp2(random.uniform(-12, 6, 512)) * random.choice([-1.0, 1.0], 512)
    values[:64] = random.uniform(-1, 1, 64)
    values[64:128] = 1 + random.normal(size=64) / 16
    return round_to(dtype, values)


def risky_pairs(dtype, length):
    values = list(edge_values(dtype))
    if dtype in FLOATS:
        special = [v for v in values if v != v or abs(v) == math.inf or abs(v) <= 1] + values
        pairs = [(a, special[(i * 7 + 3) % len(special)]) for i, a in enumerate(special)]
    else:
        low, high = values[0], values[-1]
        pairs = [(low, -1), (low, 0), (high, 0), (0, 0), (low, low), (-1, high), (1, low), (high, -1)]
        pairs += [(a, values[(i * 5 + 2) % len(values)]) for i, a in enumerate(values)]
        pairs *= 5
    return pairs[:length]


# ----- Operations -----------------------------------------------------------------------------------------------------

class Case:
    """An op on tensors of one type: its text, its semantics, and the error bound of compiled code."""

    def __init__(self, name, operands, write, kinds, meaning, ulps=0, loose_zero=False):
        """`operands`: the columns, or the number of columns of xyz."""
        self.operands = "xyz"[:operands] if isinstance(operands, int) else operands
        self.name, self.write, self.kinds = name, write, kinds
        self.meaning, self.limit, self.loose_zero = meaning, ulps, loose_zero

    def text(self, n):
        return self.write(n), self.kinds

    def expected(self, given, index):
        result = self.meaning(*given)
        return result[index] if isinstance(result, tuple) else result

    def flushes(self, dtype):
        """Whether a subnormal result becomes 0: in the polynomials of f32, and functions computed with them."""
        return self.name in ("math.exp", "math.erfc") and dtype in ("f32", "bf16")

    def ulps(self, dtype, leg):
        on_gpu = dtype == "f64" and leg == "stub"
        return GPU_F64.get(self.name.split(".")[1], self.limit) if on_gpu else self.limit


def per_element(function):
    """A function of Python floats, on arrays; NaN where it is undefined."""
    def call(value):
        try:
            return function(value)
        except (ValueError, OverflowError):
            return math.nan
    return lambda x: np.array([call(float(v)) for v in x])


def half_away(x):
    return np.copysign(np.where(np.abs(x) < 4503599627370496.0, np.floor(np.abs(x) + 0.5) -
                                (np.abs(x) == 0.49999999999999994), np.abs(x)), x)


def maximum(a, b):
    result = np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))
    return np.where(np.isnan(a) | np.isnan(b), np.nan, result)


def minimum(a, b):
    return -maximum(-a, -b)


# Units in the last place of f64 and f32, of the type's own; f16 and bf16 are computed in f32 and within 1 unit.
# 0 is the correctly rounded result. Also in docs/numerics.md.
ULPS = {
    "absf": 0, "ceil": 0, "floor": 0, "round": 0, "roundeven": 0, "trunc": 0, "negf": 0, "sqrt": 0,
    "exp": 2, "exp2": 2, "expm1": 4, "log": 2, "log2": 2, "log10": 2, "log1p": 3, "rsqrt": 2, "cbrt": 2,
    "sin": 2, "cos": 2, "tan": 3, "asin": 3, "acos": 3, "atan": 3, "sinh": 4, "cosh": 4, "tanh": 4,
    "asinh": 3, "acosh": 3, "atanh": 3, "erf": 4, "erfc": 16,
    "powf": 2, "atan2": 3, "fpowi": 3,
}

# Bounds of f64 on a GPU that differ.
GPU_F64 = {"log2": 4, "asin": 4}

UNARY = {
    "math.absf": np.abs, "math.ceil": np.ceil, "math.floor": np.floor, "math.round": half_away,
    "math.roundeven": np.rint, "math.trunc": np.trunc, "arith.negf": np.negative, "math.sqrt": np.sqrt,
    "math.exp": np.exp, "math.exp2": np.exp2, "math.expm1": np.expm1, "math.log": np.log, "math.log2": np.log2,
    "math.log10": np.log10, "math.log1p": np.log1p, "math.rsqrt": lambda x: 1 / np.sqrt(x), "math.cbrt": np.cbrt,
    "math.sin": np.sin, "math.cos": np.cos, "math.tan": np.tan, "math.asin": np.arcsin, "math.acos": np.arccos,
    "math.atan": np.arctan, "math.sinh": np.sinh, "math.cosh": np.cosh, "math.tanh": np.tanh,
    "math.asinh": np.arcsinh, "math.acosh": np.arccosh, "math.atanh": np.arctanh, "math.erf": per_element(math.erf),
    "math.erfc": per_element(math.erfc),
}

BINARY = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.remf": np.fmod, "arith.maximumf": maximum, "arith.minimumf": minimum,
    "arith.maxnumf": lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, maximum(a, b))),
    "arith.minnumf": lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, minimum(a, b))),
    "math.copysign": np.copysign, "math.atan2": np.arctan2, "math.powf": np.power,
}

ORDERED = {"eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
           "ne": np.not_equal}


def truths(values):
    return np.array([-int(bool(v)) for v in values], dtype=object)


def to_integer(dtype, is_signed):
    """Towards zero; saturates, and NaN gives 0."""
    width = INTEGERS[dtype]
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    def one(v):
        if math.isnan(v):
            return 0
        return max(low, min(high, int(v))) if math.isfinite(v) else low if v < 0 else high
    return lambda x: wrap(dtype, [one(float(v)) for v in x])


def float_cases(dtype):
    def plain(op, arity, meaning, ulps=0, loose=False, rounds=through_f32):
        names = ["{0}", "{1}", "{2}"][:arity]
        return Case(op, arity, lambda n: f"{op} {', '.join(names)} : tensor<{n}x{dtype}>", [dtype],
                    lambda *x: rounds(dtype, meaning(*x)), ulps, loose)
    for op, meaning in UNARY.items():
        yield plain(op, 1, meaning, exactness(op, dtype))
    for op, meaning in BINARY.items():
        yield plain(op, 2, meaning, exactness(op, dtype), loose="maxi" in op or "mini" in op or "num" in op)
    yield Case("math.sincos", 1, lambda n: f"math.sincos {{0}} : tensor<{n}x{dtype}>", [dtype] * 2,
               lambda x: (through_f32(dtype, np.sin(x)), through_f32(dtype, np.cos(x))), exactness("math.sin", dtype))
    yield plain("math.fma", 3, fused, 0 if dtype in ("f32", "f64") else 0)
    yield Case("math.clampf", 3, lambda n: f"math.clampf {{0}} to [{{1}}, {{2}}] : tensor<{n}x{dtype}>", [dtype],
               lambda x, low, high: minimum(maximum(x, low), high), loose_zero=True)
    yield Case("math.fpowi", "xw", lambda n: f"math.fpowi {{0}}, {{1}} : tensor<{n}x{dtype}>, tensor<{n}xi32>", [dtype],
               lambda x, n: through_f32(dtype, np.power(x, n.astype(np.float64))), exactness("math.fpowi", dtype))
    for kind in ("isnan", "isinf", "isfinite"):
        yield Case("math." + kind, 1, lambda n, k=kind: f"math.{k} {{0}} : tensor<{n}x{dtype}>", ["i1"],
                   lambda x, k=kind: truths(getattr(np, k)(x)))
    least = math.ldexp(1, FLOATS[dtype][2])
    yield Case("math.isnormal", 1, lambda n: f"math.isnormal {{0}} : tensor<{n}x{dtype}>", ["i1"],
               lambda x: truths(np.isfinite(x) & (np.abs(x) >= least)))
    for name, compare in ORDERED.items():
        for prefix in "ou":
            def meaning(a, b, compare=compare, prefix=prefix):
                nan = np.isnan(a) | np.isnan(b)
                return truths(np.where(nan, prefix == "u", compare(a, b)))
            yield comparison(dtype, "cmpf", prefix + name, meaning)
    yield comparison(dtype, "cmpf", "ord", lambda a, b: truths(~(np.isnan(a) | np.isnan(b))))
    yield comparison(dtype, "cmpf", "uno", lambda a, b: truths(np.isnan(a) | np.isnan(b)))
    yield comparison(dtype, "cmpf", "true", lambda a, b: truths(a == a) * 0 - 1)
    yield comparison(dtype, "cmpf", "false", lambda a, b: truths(a == a) * 0)
    for to in INTEGERS:
        if to != "index":
            yield cast("arith.fptosi", dtype, to, to_integer(to, True))
            yield cast("arith.fptoui", dtype, to, to_integer(to, False))
    for to in FLOATS:
        bits, other = FLOATS[dtype][1], FLOATS[to][1]
        wide, narrow = {"f64": 64, "f32": 32}.get(dtype, 16), {"f64": 64, "f32": 32}.get(to, 16)
        if wide < narrow:
            yield cast("arith.extf", dtype, to, lambda x: x)
        elif wide > narrow:
            yield cast("arith.truncf", dtype, to, lambda x, to=to: round_to(to, x))
    whole = {"f64": "i64", "f32": "i32", "f16": "i16", "bf16": "i16"}[dtype]
    yield cast("arith.bitcast", dtype, whole, lambda x: decode(encode(x, dtype).view(f"i{INTEGERS[whole] // 8}"), whole),
               )


def fused(x, y, z):
    """x y + z rounded once: for narrower types in f64, exact except for its rounding; for f64 by fractions."""
    from fractions import Fraction
    def one(a, b, c):
        if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
            return a * b + c
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact == 0:
            return a * b + c
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf
    return np.array([one(*map(float, v)) for v in zip(x, y, z)])


def exactness(op, dtype):
    limit = ULPS.get(op.split(".")[1], 0)
    return limit if dtype in ("f64", "f32") else min(limit, 1)


def comparison(dtype, op, predicate, meaning):
    return Case(f"arith.{op} {predicate}", 2, lambda n: f"arith.{op} {predicate}, {{0}}, {{1}} : tensor<{n}x{dtype}>",
                ["i1"], meaning)


def cast(op, dtype, to, meaning, ulps=0):
    return Case(f"{op} to {to}", 1, lambda n: f"{op} {{0}} : tensor<{n}x{dtype}> to tensor<{n}x{to}>", [to], meaning, ulps)


def integer_cases(dtype):
    width = INTEGERS[dtype]
    least, ones = -(1 << (width - 1)), -1
    u = lambda values: unsigned(dtype, values)

    def of(function):
        return lambda a, b: wrap(dtype, [function(int(x), int(y)) for x, y in zip(a, b)])

    def of_unsigned(function):
        return lambda a, b: wrap(dtype, [function(int(x), int(y)) for x, y in zip(u(a), u(b))])

    def towards_zero(a, b):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    def power(a, b):
        if b < 0:
            return {1: 1, -1: -1 if b % 2 else 1, 0: -1}.get(a, 0)
        return pow(a, b, 1 << width)

    binary = {
        "arith.addi": of(lambda a, b: a + b), "arith.subi": of(lambda a, b: a - b),
        "arith.muli": of(lambda a, b: a * b), "arith.andi": of(lambda a, b: a & b), "arith.ori": of(lambda a, b: a | b),
        "arith.xori": of(lambda a, b: a ^ b), "arith.maxsi": of(max), "arith.minsi": of(min),
        "arith.maxui": of_unsigned(max), "arith.minui": of_unsigned(min),
        "arith.divsi": of(lambda a, b: towards_zero(a, b) if b else ones),
        "arith.remsi": of(lambda a, b: a - towards_zero(a, b) * b if b else a),
        "arith.floordivsi": of(lambda a, b: a // b if b else ones),
        "arith.ceildivsi": of(lambda a, b: -(-a // b) if b else ones),
        "arith.divui": of_unsigned(lambda a, b: a // b if b else ones),
        "arith.remui": of_unsigned(lambda a, b: a % b if b else a),
        "arith.ceildivui": of_unsigned(lambda a, b: -(-a // b) if b else ones),
        "arith.shli": of_unsigned(lambda a, b: a << b if b < width else 0),
        "arith.shrui": of_unsigned(lambda a, b: a >> b if b < width else 0),
        "arith.shrsi": lambda a, b: wrap(dtype, [int(x) >> min(int(y), width - 1) for x, y in zip(a, u(b))]),
    }
    if dtype != "index":
        binary["math.ipowi"] = of(power)
    for op, meaning in binary.items():
        yield Case(op, 2, lambda n, op=op: f"{op} {{0}}, {{1}} : tensor<{n}x{dtype}>", [dtype], meaning)
    for name, compare in {"eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__",
                          "ge": "__ge__"}.items():
        for prefix in ("s", "u") if name not in ("eq", "ne") else ("",):
            def meaning(a, b, compare=compare, prefix=prefix):
                a, b = (u(a), u(b)) if prefix == "u" else (a, b)
                return truths([getattr(int(x), compare)(int(y)) for x, y in zip(a, b)])
            yield comparison(dtype, "cmpi", prefix + name, meaning)
    if dtype == "index":
        for to in INTEGERS:
            if to != "index":
                yield cast("arith.index_cast", dtype, to, lambda x, to=to: wrap(to, x))
                yield cast("arith.index_castui", dtype, to, lambda x, to=to: wrap(to, x))
        return
    bits = lambda x: [format(v, f"0{width}b") for v in u(x)]
    unary = {
        "math.absi": lambda x: wrap(dtype, [abs(int(v)) for v in x]),
        "math.ctlz": lambda x: wrap(dtype, [width - len(s.lstrip("0")) for s in bits(x)]),
        "math.cttz": lambda x: wrap(dtype, [width - len(s.rstrip("0")) for s in bits(x)]),
        "math.ctpop": lambda x: wrap(dtype, [s.count("1") for s in bits(x)]),
    }
    for op, meaning in unary.items():
        yield Case(op, 1, lambda n, op=op: f"{op} {{0}} : tensor<{n}x{dtype}>", [dtype], meaning)
    def halves(product):
        return wrap(dtype, product), wrap(dtype, [p >> width for p in product])
    yield Case("arith.mulsi_extended", 2, lambda n: f"arith.mulsi_extended {{0}}, {{1}} : tensor<{n}x{dtype}>",
               [dtype] * 2, lambda a, b: halves([int(x) * int(y) for x, y in zip(a, b)]))
    yield Case("arith.mului_extended", 2, lambda n: f"arith.mului_extended {{0}}, {{1}} : tensor<{n}x{dtype}>",
               [dtype] * 2, lambda a, b: halves([x * y for x, y in zip(u(a), u(b))]))
    yield Case("arith.addui_extended", 2,
               lambda n: f"arith.addui_extended {{0}}, {{1}} : tensor<{n}x{dtype}>, tensor<{n}xi1>", [dtype, "i1"],
               lambda a, b: (wrap(dtype, [x + y for x, y in zip(u(a), u(b))]),
                             truths([(x + y) >> width for x, y in zip(u(a), u(b))])))
    for to, other in INTEGERS.items():
        if to == "index":
            yield cast("arith.index_cast", dtype, to, lambda x: x)
            yield cast("arith.index_castui", dtype, to, lambda x: wrap("index", u(x)))
        elif other > width:
            yield cast("arith.extsi", dtype, to, lambda x: x)
            yield cast("arith.extui", dtype, to, lambda x, to=to: wrap(to, u(x)))
        elif other < width:
            yield cast("arith.trunci", dtype, to, lambda x, to=to: wrap(to, x))
    for to in FLOATS:
        # Python's and NumPy's conversions of integers round once, to nearest even.
        def convert(x, to=to):
            if to == "f64":
                return np.array([float(int(v)) for v in x])
            return round_to(to, np.array([np.float64(np.float32(np.int64(int(v)) if int(v) < 1 << 63 else np.uint64(int(v))))
                                          for v in x]))
        yield cast("arith.sitofp", dtype, to, convert)
        yield cast("arith.uitofp", dtype, to, lambda x, convert=convert: convert(u(x)))
    same = {"i16": ("f16", "bf16"), "i32": ("f32",), "i64": ("f64",)}.get(dtype, ())
    for to in same:
        yield cast("arith.bitcast", dtype, to, lambda x, to=to: decode(
            encode(x, dtype).view("u2" if to == "bf16" else FLOATS[to][0]), to))


def cases(dtype):
    return list(float_cases(dtype) if dtype in FLOATS else integer_cases(dtype))
