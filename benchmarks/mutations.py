"""All mutants of the package, and a draw of them: each changes a comparison, an operator, a number, a condition, a
statement or a return value.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ORDERS = ast.Lt, ast.LtE, ast.Gt, ast.GtE
OTHER = {ast.Eq: ast.NotEq, ast.In: ast.NotIn, ast.Is: ast.IsNot, ast.Add: ast.Sub, ast.Mult: ast.Div, ast.And: ast.Or}
OTHER |= {new: old for old, new in OTHER.items()} | {ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.Pow: ast.Mult}
OTHER |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    old: str
    new: str
    span: tuple  # (first line, first byte, last line, last byte) of the old text.
    lines: frozenset  # Lines whose tests can notice it.
    names: tuple  # Names defined by a statement outside functions, whose readers can notice it.
    key: str

    def apply(self, text: str) -> str:
        first, start, last, end = self.span
        lines = text.encode().splitlines(keepends=True)
        return b"".join(
            [*lines[: first - 1], lines[first - 1][:start], self.new.encode(), lines[last - 1][end:], *lines[last:]]
        ).decode()


def replacements(node: ast.AST, seed: int):
    """Pairs of a node and the text that replaces it."""

    def choose(*choices):
        return random.Random(f"{seed} {ast.unparse(node)}").choice(choices)

    match node:
        case ast.Compare(ops=[op]):
            new = choose(*(order for order in ORDERS if order is not type(op))) if type(op) in ORDERS else None
            yield node, f"({ast.unparse(ast.Compare(node.left, [(new or OTHER[type(op)])()], node.comparators))})"
        case ast.BinOp(left, op, right) if type(op) in OTHER:
            yield node, f"({ast.unparse(ast.BinOp(left, OTHER[type(op)](), right))})"
        case ast.BoolOp(op, values):
            yield node, f"({ast.unparse(ast.BoolOp(OTHER[type(op)](), values))})"
        case ast.AugAssign(target, op, value) if type(op) in OTHER:
            yield node, choose(ast.unparse(ast.AugAssign(target, OTHER[type(op)](), value)), "pass")
        case ast.Constant(bool() as value):
            yield node, str(not value)
        case ast.Constant(int() as value):
            yield node, str(value + 1)
        case ast.Constant(float() as value):
            yield node, str(2 * value or 1.0)
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.UnaryOp(ast.Not(), operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Expr(ast.Call()) | ast.Raise():
            yield node, "pass"
        case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield node, "return None"


def mutants_of(path: str, text: str, seed: int) -> list[Mutant]:
    """All mutants of a file."""
    found, seen = [], defaultdict(int)
    encoded = text.encode().splitlines()

    def add(node, new, where, lines, names):
        span = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
        old = ast.unparse(node)
        identity = f"{path} {where} {encoded[node.lineno - 1].decode().strip()} {old} -> {new}"
        seen[identity] += 1
        key = hashlib.sha256(f"{seed} {identity} {seen[identity]}".encode()).hexdigest()
        found.append(Mutant(path, node.lineno, old, new, span, frozenset(lines), names, key))

    def visit(node, where, lines, names):
        if isinstance(node, ast.JoinedStr):
            return  # Python 3.11 does not know the places inside an f-string.
        if isinstance(node, ast.stmt) and where:
            header = [n for n in ast.iter_child_nodes(node) if isinstance(n, (ast.expr, ast.withitem, ast.arguments))]
            ends = [n.end_lineno for part in header for n in ast.walk(part) if hasattr(n, "end_lineno")]
            last = max(ends, default=node.lineno) if hasattr(node, "body") else node.end_lineno
            lines = range(node.lineno, last + 1)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and not names:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = tuple(n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
        for old, new in replacements(node, seed):
            add(old, new, where, lines, names)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or field in ("annotation", "returns", "decorator_list"):
                    continue
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    body = range(node.body[0].lineno, node.end_lineno + 1)
                    visit(child, f"{where}.{node.name}", body, ())
                elif isinstance(node, ast.ClassDef):
                    visit(child, where, range(node.lineno, node.end_lineno + 1), (node.name,))
                else:
                    visit(child, where, lines, names)

    visit(ast.parse(text), "", (), ())
    return found


def draw(count: int, seed: int) -> list[Mutant]:
    """The mutants of all files whose hashes are the smallest."""
    files = sorted((ROOT / "src").rglob("*.py"))
    every = [m for f in files for m in mutants_of(str(f.relative_to(ROOT / "src")), f.read_text(), seed)]
    print(f"{len(every):,} mutants of {len(files)} files; {count} drawn with seed {seed}")
    return sorted(every, key=lambda mutant: mutant.key)[:count]
