"""Every statement of the product, prepared by PostgreSQL on the migrated database."""

import ast
import importlib
import inspect
import pkgutil
from types import ModuleType

import tocsin.store
from tocsin.store.failure import StatementFailed
from tocsin.store.pool import Database
from tocsin.store.query import Query


def store_modules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(tocsin.store.__path__)]
    return [importlib.import_module(f"tocsin.store.{name}") for name in names]


def statements() -> dict[str, Query]:
    """Each constant, under `module.NAME`; imported ones where they are made only."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in store_modules()
        for name, value in vars(module).items()
        if isinstance(value, Query) and name in _assigned(module)
    }


def _assigned(module: ModuleType) -> set[str]:
    tree = ast.parse(inspect.getsource(module))
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


STATEMENTS = statements()


def test_there_are_statements_and_each_has_a_name_of_its_own() -> None:
    names = [query.name for query in STATEMENTS.values()]

    assert len(names) > 10
    assert sorted(names) == sorted(set(names))


async def test_postgresql_understands_every_statement(db: Database) -> None:
    refused: dict[str, str] = {}
    untyped: dict[str, list[str]] = {}
    async with db.general.session() as session:
        for where, query in STATEMENTS.items():
            try:
                signature = await session.signature(query)
            except StatementFailed as error:
                refused[where] = error.detail
                continue
            unclear = [name for name, kind in signature.columns if kind == "unknown"]
            if unclear:
                untyped[where] = unclear

    assert refused == {}
    assert untyped == {}


def test_every_query_of_the_store_is_a_constant_of_its_module() -> None:
    made_inside = [
        f"{module.__name__}:{call.lineno}"
        for module in store_modules()
        for function in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Query"
    ]

    assert made_inside == []
