"""Build torch.fx graphs from printed text, without running it.

The text is parsed by Python's own `ast.parse` and walked statement by statement, so this is a
second opinion on what a printed graph means that shares no code with Tuck's reader. Nodes keep the
names they have in the text; targets become the Python objects they name.

    loaded = load(text)            one graph: class form, bare `def forward`, or a runnable script
    for loaded in load_all(text)   all graphs of a text, in order
    loaded.graph                   torch.fx.Graph
    loaded.children                nested classes, by name
    loaded.module()                a GraphModule; attributes the text only names are stand-ins
    differences(a, b)              list of sentences, empty when the graphs are the same

What the text leaves open is kept comparable: a global that is not of torch, operator or builtins is
a `Global`, an operand without a Python value (a symbol expression, an enum member, a repr) is an
`Opaque`.
"""

import ast
import builtins
import importlib
import keyword
import math
import operator
import re
from dataclasses import dataclass, field

import torch
import torch.fx

# Operators that exist only once the module that registers them has been imported.
REGISTERED_BY = {
    "_c10d_functional": "torch.distributed._functional_collectives",
    "_dtensor": "torch.distributed.tensor",
    "bucketing": "torch._inductor.fx_passes.bucketing",
    "fsdp": "torch.distributed.fsdp._fully_shard._fsdp_collectives",
    "higher_order": "torch._inductor.fx_passes.control_dependencies",
    "prims": "torch._inductor.inductor_prims",
    "symm_mem": "torch.distributed._symmetric_memory",
}

KNOWN_GLOBALS = {
    "torch": torch,
    "device": torch.device,
    "inf": math.inf,
    "nan": math.nan,
    "NoneType": type(None),
    "Ellipsis": Ellipsis,
}

BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
IN_PLACE = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# Operands printed as a call that have a value here.
MAKERS = {
    "slice": slice,
    "range": range,
    "device": torch.device,
    "torch.device": torch.device,
    "torch.Size": torch.Size,
}
UNARY = {ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert}


class LoadError(Exception):
    """The loader does not understand the text; the message says which line."""


class Global:
    """A function known by its printed name only; one object per name: compare with `is`."""

    _known = {}

    def __new__(cls, name):
        if name not in cls._known:
            self = super().__new__(cls)
            # A printed name joins module and name by "_"; splitting at any of them makes fx print
            # the same again.
            cut = name.rfind("_", 1, len(name) - 1)
            self.printed = name
            self.__module__, self.__name__ = (
                (name[:cut], name[cut + 1 :]) if cut > 0 else ("", name)
            )
            cls._known[name] = self
        return cls._known[name]

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self.printed} is known by name only")

    def __repr__(self):
        return self.printed

    def __deepcopy__(self, memo):
        return self


@dataclass(frozen=True)
class Opaque:
    """An operand that has no value here, as normalized source text."""

    text: str

    def __repr__(self):
        return self.text


@dataclass
class Loaded:
    name: str
    graph: torch.fx.Graph
    children: dict = field(default_factory=dict)
    signature: list = field(default_factory=list)  # parameters, before a prologue unpacks them
    unresolved: list = field(default_factory=list)  # targets that stayed a Global

    def module(self):
        """A GraphModule around the graph; what the text names but does not contain is a stand-in."""
        root = {}
        for node in self.graph.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            if node.target in self.children:
                root[node.target] = self.children[node.target].module()
            elif node.op == "call_module":
                root[node.target] = torch.nn.Identity()
            else:
                root[node.target] = torch.nn.Parameter(torch.zeros(()), requires_grad=False)
        return torch.fx.GraphModule(root, self.graph, class_name=self.name or "GraphModule")

    def opaque(self):
        """Operands that have no value here, in this graph and the nested ones."""
        found = []
        for _, loaded in self.walk():
            for node in loaded.graph.nodes:
                _each(found.append, node.args, node.kwargs)
        return [v for v in found if isinstance(v, Opaque)]

    def walk(self):
        """This graph and all nested ones, each with its path."""
        yield self.name, self
        for child in self.children.values():
            for path, graph in child.walk():
                yield f"{self.name}.{path}", graph


def fix_class_name(text, name="GraphModule"):
    """Replaces class names that are not Python (`<lambda>`), as --exec must."""

    def put(match):
        old = match.group(2)
        good = old.isidentifier() and not keyword.iskeyword(old)
        return match.group(1) + (old if good else name) + match.group(3)

    return re.sub(r"^( *class )([^(\n]+)(\(torch\.nn\.Module\):)", put, text, flags=re.M)


def load_all(text):
    tree = ast.parse(text)
    found = []
    for item in tree.body:
        if isinstance(item, ast.ClassDef) and _forward_of(item):
            found.append(_load_class(item))
        elif isinstance(item, ast.FunctionDef) and item.name == "forward":
            found.append(_Function("", item).loaded)
    return found


def load(text):
    found = load_all(text)
    if len(found) != 1:
        raise LoadError(f"expected one graph, found {len(found)}")
    return found[0]


def global_value(name):
    """What an executed text finds under a global name."""
    if name in KNOWN_GLOBALS:
        return KNOWN_GLOBALS[name]
    if name == "fx_pytree":
        return importlib.import_module("torch.fx._pytree")
    if name == "pytree":
        return importlib.import_module("torch.utils._pytree")
    return getattr(builtins, name, None) or Global(name)


def _forward_of(cls):
    functions = (f for f in cls.body if isinstance(f, ast.FunctionDef))
    return next((f for f in functions if f.name == "forward"), None)


def _load_class(cls):
    loaded = _Function(cls.name, _forward_of(cls)).loaded
    for item in cls.body:
        if isinstance(item, ast.ClassDef):
            if item.name in loaded.children:
                raise LoadError(f"line {item.lineno}: class {item.name} defined twice")
            loaded.children[item.name] = _load_class(item)
    return loaded


def _resolve(parts):
    """The object a dotted global names, or None."""
    if parts[0] == "torch":
        if parts[1:2] == ["ops"] and len(parts) > 2 and parts[2] in REGISTERED_BY:
            importlib.import_module(REGISTERED_BY[parts[2]])
        value = torch
        for part in parts[1:]:
            try:
                value = getattr(value, part)
            except (AttributeError, RuntimeError):
                return None
        return value
    if len(parts) > 1:
        return None
    if parts[0] in KNOWN_GLOBALS:
        return KNOWN_GLOBALS[parts[0]]
    return getattr(builtins, parts[0], None)


def _is_none(expr):
    return isinstance(expr, ast.Constant) and expr.value is None


def _dotted(expr):
    """The text of a dotted name, None for anything else."""
    parts = []
    while isinstance(expr, ast.Attribute):
        parts.append(expr.attr)
        expr = expr.value
    return ".".join([expr.id] + parts[::-1]) if isinstance(expr, ast.Name) else None


def _called(expr, *names):
    """Is this a call of one of the dotted names?"""
    return isinstance(expr, ast.Call) and _dotted(expr.func) in names


def _assigned(statement, kind):
    """Is this a plain assignment to one target of that kind?"""
    one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return one and isinstance(statement.targets[0], kind)


class _Function:
    """One `def forward`, turned into a graph."""

    def __init__(self, name, function):
        self.graph = torch.fx.Graph()
        self.loaded = Loaded(name, self.graph)
        self.nodes = {}  # name -> Node, of what is alive
        self.freed = set()
        self.annotations = {}  # of annotation-only statements
        self.pending = None  # an in-place statement whose result is named by the next one
        body = self.prologue(function)
        for statement in body:
            self.statement(statement)
        if not any(n.op == "output" for n in self.graph.nodes) and self.nodes:
            raise LoadError(f"line {function.lineno}: no return")

    # ---- placeholders ----

    def prologue(self, function):
        """Makes the placeholders; returns the remaining statements."""
        parameters = self.parameters(function.args)
        self.loaded.signature = [p[0] for p in parameters]
        body = list(function.body)
        while body and isinstance(body[0], ast.AnnAssign) and body[0].value is None:
            statement = body.pop(0)
            self.annotations[statement.target.id] = statement.annotation
        if body and _assigned(body[0], ast.Name) and body[0].targets[0].id == "_fn_args":
            body.pop(0)
        first = body[0] if body else None
        flatten = ("fx_pytree.tree_flatten_spec", "self._dynamo_bytecode_flatten")
        if _assigned(first, ast.Tuple) and _called(first.value, *flatten):
            for target in body.pop(0).targets[0].elts:
                self.placeholder(target.id, target.id, self.annotations.get(target.id), ())
            return body
        if _assigned(first, ast.Name) and _called(first.value, "iter"):
            body.pop(0)
            while body and _assigned(body[0], ast.Name) and _called(body[0].value, "next"):
                name = body.pop(0).targets[0].id
                self.placeholder(name, name, None, ())
            if body and isinstance(body[0], ast.Expr) and _called(body[0].value, "args_list.clear"):
                body.pop(0)
            return body
        names = {}  # parameter -> the name that an alias line gives it
        plain = {p[0].lstrip("*") for p in parameters}
        while body and _assigned(body[0], ast.Name) and isinstance(body[0].value, ast.Name):
            if body[0].value.id not in plain:
                break
            statement = body.pop(0)
            names[statement.value.id] = statement.targets[0].id
        for target, annotation, default in parameters:
            raw = target.lstrip("*")
            self.placeholder(names.get(raw, raw), target, annotation, default)
        return body

    def parameters(self, a):
        """(target, annotation, default as a tuple of at most one value), without self."""
        positional = a.posonlyargs + a.args
        defaults = [(self.value(d),) for d in a.defaults]
        defaults = [()] * (len(positional) - len(defaults)) + defaults
        found = [(p.arg, p.annotation, d) for p, d in zip(positional, defaults)]
        if not found or found[0][0] != "self":
            raise LoadError("the first parameter is not self")
        if a.vararg:
            found.append(("*" + a.vararg.arg, a.vararg.annotation, ()))
        for p, d in zip(a.kwonlyargs, a.kw_defaults):
            found.append((p.arg, p.annotation, () if d is None else (self.value(d),)))
        if a.kwarg:
            found.append(("**" + a.kwarg.arg, a.kwarg.annotation, ()))
        return found[1:]

    def placeholder(self, name, target, annotation, default):
        self.add("placeholder", target, default, {}, name, annotation)

    # ---- statements ----

    def statement(self, s):
        if isinstance(s, (ast.Pass, ast.Expr)):
            self.expression(s)
        elif isinstance(s, ast.Return):
            self.add("output", "output", (self.output(s.value),), {}, "output", None)
        elif isinstance(s, ast.AugAssign):
            operands = (self.value(s.target), self.value(s.value))
            self.pending = (IN_PLACE[type(s.op)], operands, s.target)
        elif isinstance(s, ast.AnnAssign) and s.value is not None:
            self.assign(s.target.id, s.annotation, s.value, s)
        elif isinstance(s, ast.Assign):
            if all(isinstance(t, ast.Name) for t in s.targets) and _is_none(s.value):
                for target in s.targets:
                    self.free(target)
            elif isinstance(s.targets[0], ast.Subscript):
                t = s.targets[0]
                operands = (self.value(t.value), self.value(t.slice), self.value(s.value))
                self.pending = (operator.setitem, operands, t.value)
            elif len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
                self.assign(s.targets[0].id, None, s.value, s)
            else:
                raise LoadError(f"line {s.lineno}: unknown assignment {ast.unparse(s)}")
        else:
            raise LoadError(f"line {s.lineno}: unknown statement {ast.unparse(s)}")

    def expression(self, s):
        """Statements that are not nodes: `pass`, docstrings, the profiler's calls."""
        if isinstance(s, ast.Pass) or isinstance(s.value, ast.Constant):
            return
        if re.match(r"_rf\w*\.__(enter|exit)__\(", ast.unparse(s.value)):
            return
        raise LoadError(f"line {s.lineno}: unknown statement {ast.unparse(s)}")

    def assign(self, name, annotation, value, s):
        if name.startswith("_rf") and _called(value, "torch._C._profiler._RecordFunctionFast"):
            return
        if self.pending:
            function, args, target = self.pending
            if ast.unparse(target) != ast.unparse(value):
                raise LoadError(
                    f"line {s.lineno}: {name} is not the result of the statement before"
                )
            self.pending = None
            self.add("call_function", function, args, {}, name, annotation)
            return
        op, target, args, kwargs = self.operation(value)
        if isinstance(target, Global):
            self.loaded.unresolved.append(target.printed)
        self.add(op, target, args, kwargs, name, annotation)

    def free(self, target):
        if target.id not in self.nodes:
            raise LoadError(f"line {target.lineno}: {target.id} is freed but not alive")
        del self.nodes[target.id]
        self.freed.add(target.id)

    def add(self, op, target, args, kwargs, name, annotation):
        if name in self.nodes or name in self.freed:
            raise LoadError(f"{name} is defined twice")
        node = self.graph.create_node(op, target, args, kwargs, name)
        if node.name != name:
            raise LoadError(f"fx calls {name} {node.name}")
        if annotation is not None:
            quoted = isinstance(annotation, ast.Constant)
            node.meta["annotation"] = annotation.value if quoted else ast.unparse(annotation)
            if not quoted:
                node.type = self.value(annotation)
        if op != "output":
            self.nodes[name] = node

    def output(self, expr):
        """The returned value, without the call that makes a nested result from a flat one."""
        if _called(expr, "pytree.tree_unflatten"):
            return self.value(expr.args[0])
        if _called(expr, "self._dynamo_bytecode_unflatten"):
            return self.value(expr.args[0])
        return None if expr is None else self.value(expr)

    # ---- right-hand sides ----

    def operation(self, e):
        """(op, target, args, kwargs) of the operation in a statement."""
        base, parts = self.path(e)
        if base == "self":
            return "get_attr", ".".join(parts), (), {}
        if base in self.nodes and len(parts) == 1:
            return "call_function", getattr, (self.nodes[base], parts[0]), {}
        if isinstance(e, ast.Call):
            return self.call(e)
        if isinstance(e, ast.BinOp):
            operands = (self.value(e.left), self.value(e.right))
            return "call_function", BINARY[type(e.op)], operands, {}
        if isinstance(e, ast.Compare) and len(e.ops) == 1:
            operands = (self.value(e.left), self.value(e.comparators[0]))
            return "call_function", COMPARE[type(e.ops[0])], operands, {}
        if isinstance(e, ast.UnaryOp):
            inner = e.operand
            power = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow)
            if power and isinstance(e.op, ast.USub):
                # pow(-2, x) is printed as `-2 ** x`: an operand is an atom, whatever Python binds.
                base = self.value(ast.UnaryOp(ast.USub(), inner.left))
                return "call_function", operator.pow, (base, self.value(inner.right)), {}
            return "call_function", UNARY[type(e.op)], (self.value(inner),), {}
        if isinstance(e, ast.Subscript):
            return "call_function", operator.getitem, (self.value(e.value), self.value(e.slice)), {}
        raise LoadError(f"line {e.lineno}: unknown operation {ast.unparse(e)}")

    def call(self, e):
        args = tuple(self.value(a) for a in e.args)
        kwargs = {k.arg: self.value(k.value) for k in e.keywords}
        base, parts = self.path(e.func)
        if base == "self":
            return "call_module", ".".join(parts), args, kwargs
        if base in self.nodes:
            if len(parts) != 1:
                raise LoadError(f"line {e.lineno}: unknown call {ast.unparse(e)}")
            return "call_method", parts[0], (self.nodes[base],) + args, kwargs
        if base is None:
            raise LoadError(f"line {e.lineno}: unknown call {ast.unparse(e)}")
        if base in self.freed:
            raise LoadError(f"line {e.lineno}: {base} is used after it was freed")
        target = _resolve([base] + parts)
        if target is None:
            target = Global(".".join([base] + parts))
        return "call_function", target, args, kwargs

    def path(self, e):
        """(first name, further elements) of a dotted path; in it getattr(P, "E") wraps an element
        that is not an identifier; (None, []) for anything else."""
        parts = []
        while True:
            if isinstance(e, ast.Attribute):
                parts.append(e.attr)
                e = e.value
            elif _called(e, "getattr") and len(e.args) == 2 and isinstance(e.args[1], ast.Constant):
                parts.append(e.args[1].value)
                e = e.args[0]
            elif isinstance(e, ast.Name):
                return e.id, parts[::-1]
            else:
                return None, []

    # ---- operands ----

    def value(self, e):
        if isinstance(e, ast.Constant):
            return e.value
        if isinstance(e, ast.Name):
            return self.name(e)
        if isinstance(e, ast.List):
            return [self.value(x) for x in e.elts]
        if isinstance(e, ast.Tuple):
            return tuple(self.value(x) for x in e.elts)
        if isinstance(e, ast.Dict):
            return {self.value(k): self.value(v) for k, v in zip(e.keys, e.values)}
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, (ast.USub, ast.UAdd)):
            inner = self.value(e.operand)
            if type(inner) in (int, float, complex):
                return -inner if isinstance(e.op, ast.USub) else inner
        if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
            left, right = self.constant(e.left), self.constant(e.right)
            if left is not None and type(right) is complex:
                return left + right if isinstance(e.op, ast.Add) else left - right
        if isinstance(e, ast.Call):
            return self.built(e)
        if isinstance(e, ast.Attribute):
            base, parts = self.path(e)
            if base == "torch":
                value = _resolve([base] + parts)
                if value is not None:
                    return value
        return self.opaque(e)

    def name(self, e):
        if e.id in self.nodes:
            return self.nodes[e.id]
        if e.id in self.freed:
            raise LoadError(f"line {e.lineno}: {e.id} is used after it was freed")
        if e.id in KNOWN_GLOBALS:
            return KNOWN_GLOBALS[e.id]
        if e.id in ("int", "float", "bool", "str"):
            return getattr(builtins, e.id)
        return Opaque(e.id)

    def constant(self, e):
        """A number that needs no names, or None."""
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            inner = self.constant(e.operand)
            return None if inner is None else -inner
        number = isinstance(e, ast.Constant) and type(e.value) in (int, float, complex)
        return e.value if number else None

    def built(self, e):
        """Operands printed as a call."""
        maker = MAKERS.get(_dotted(e.func))
        if maker is None:
            return self.opaque(e)
        keywords = {k.arg: self.value(k.value) for k in e.keywords}
        return maker(*[self.value(a) for a in e.args], **keywords)

    def opaque(self, e):
        for name in ast.walk(e):
            if isinstance(name, ast.Name) and name.id in self.freed:
                raise LoadError(f"line {e.lineno}: {name.id} is used after it was freed")
        return Opaque(ast.unparse(e))


# ---- comparing ----


def _plain(v):
    """A value for which == means: the same type, the same number, the same node name."""
    if isinstance(v, torch.fx.Node):
        return "node", v.name
    if isinstance(v, (float, complex)):
        return type(v).__name__, repr(v)
    if isinstance(v, slice):
        return "slice", _plain(v.start), _plain(v.stop), _plain(v.step)
    if isinstance(v, torch.Size):
        return "Size", tuple(v)
    if isinstance(v, list):
        return "list", tuple(_plain(x) for x in v)
    if isinstance(v, tuple):
        return "tuple", tuple(_plain(x) for x in v)
    if isinstance(v, dict):
        return "dict", tuple((_plain(k), _plain(x)) for k, x in v.items())
    return type(v).__name__, v


def _annotation(node):
    """The text of an annotation, quoted or not; Python and torch put other blanks into types."""
    text = node.meta.get("annotation")
    return text if text is None else "".join(text.split())


def _each(visit, *values):
    """Call visit for every operand, containers opened."""
    for v in values:
        if isinstance(v, (list, tuple)):
            _each(visit, *v)
        elif isinstance(v, dict):
            _each(visit, *v.values())
        elif isinstance(v, slice):
            _each(visit, v.start, v.stop, v.step)
        else:
            visit(v)


def differences(a, b, annotations=True):
    """The differences between two loaded graphs, including nested ones; [] if there are none."""
    found = []
    if a.name != b.name:
        found.append(f"class {a.name} against {b.name}")
    if a.signature != b.signature:
        found.append(f"{a.name}: parameters {a.signature} against {b.signature}")
    first, second = list(a.graph.nodes), list(b.graph.nodes)
    if len(first) != len(second):
        found.append(f"{a.name}: {len(first)} nodes against {len(second)}")
    for x, y in zip(first, second):
        parts = [
            ("name", x.name, y.name),
            ("kind", x.op, y.op),
            ("target", x.target, y.target),
            ("arguments", x.args, y.args),
            ("keywords", x.kwargs, y.kwargs),
        ]
        if annotations:
            parts.append(("annotation", _annotation(x), _annotation(y)))
        for what, p, q in parts:
            if _plain(p) != _plain(q):
                found.append(f"{a.name}: {x.name}: {what} {p!r} against {q!r}")
    if list(a.children) != list(b.children):
        found.append(f"{a.name}: nested {list(a.children)} against {list(b.children)}")
    for name in a.children.keys() & b.children.keys():
        found += differences(a.children[name], b.children[name], annotations)
    return found


def same(a, b, annotations=True):
    return not differences(a, b, annotations)
