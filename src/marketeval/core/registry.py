"""Names for components, with near misses, open to other packages through entry points.

A package outside registers a component by an entry point in the group `marketeval.<kind>`
(say `marketeval.metrics`); it is imported only when its name is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Generic, TypeVar, cast

from marketeval.core.errors import UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Components of one kind by name.

    `built_in` maps each shipped name to its place, `"module:attribute"` or `"module"`, so that
    listing names imports nothing.
    """

    def __init__(self, kind: str, built_in: Mapping[str, str], *, plural: str = "") -> None:
        self.kind = kind
        self._group = f"marketeval.{plural or kind + 's'}"
        self._places = dict(built_in)
        self._made: dict[str, T] = {}

    def add(self, name: str, component: T) -> T:
        """Register a component made at run time, say in a test or a notebook."""
        self._made[name] = component
        return component

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            places = self._places if name in self._places else self._all_places()
            if name not in places:
                raise UnknownNameError(self.kind, name, self)
            module, _, attribute = places[name].partition(":")
            found = importlib.import_module(module)
            if attribute:
                found = getattr(found, attribute)
            self._made[name] = cast(T, found)  # cast: an import cannot be typed
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._all_places(), *self._made}))

    def __contains__(self, name: object) -> bool:
        return name in self._made or name in self._places or name in self._all_places()

    def _all_places(self) -> dict[str, str]:
        """Also those of other packages, which takes a look at everything that is installed."""
        outside = {point.name: point.value for point in entry_points(group=self._group)}
        return {**outside, **self._places}


def registered(registry: Registry[T], name: str) -> Callable[[T], T]:
    """A decorator that registers what it decorates."""
    return lambda component: registry.add(name, component)
