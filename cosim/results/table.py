"""A table of results: columns of one length, as numpy arrays, and as pandas or Arrow where installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError

if TYPE_CHECKING:
    import pandas
    import pyarrow

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """A column of few different texts: ``names[codes[i]]`` in row i."""

    codes: NDArray[np.integer[Any]]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def texts(self) -> Array:
        """str[rows]."""
        return np.array(self.names, np.str_)[self.codes] if self.names else np.zeros(len(self), np.str_)


def labels(texts: Sequence[str]) -> Labels:
    """A column of texts."""
    names: dict[str, int] = {}
    codes = [names.setdefault(text, len(names)) for text in texts]
    return Labels(np.array(codes, np.int32), tuple(names))


class Table(Mapping[str, Array]):
    """Columns by name; each is an attribute too. Units are in the names: ``_ps`` picoseconds, ``_bytes``,
    ``_bps`` bits per second; shares and utilisations are fractions.

    Examples
    --------
    >>> import numpy as np
    >>> from cosim import Table
    >>> columns = {"name": np.array(["a -> b"]), "busy_ps": np.array([5])}
    >>> table = Table("links", columns, {"name": "of the link"})
    >>> table.busy_ps
    array([5])
    >>> len(table), table.num_rows
    (2, 1)
    >>> print(table)
    links: 1 row
      name     of the link
      busy_ps
    """

    def __init__(
        self, name: str, columns: Mapping[str, Array | Labels], texts: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._columns = dict(columns)
        self._texts = texts or {}

    @property
    def num_rows(self) -> int:
        """Length of each column."""
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, column: str) -> Array:
        found = self._columns[column]
        return found.texts() if isinstance(found, Labels) else found

    def __getattr__(self, column: str) -> Array:
        if column.startswith("_") or column not in self._columns:
            raise AttributeError(f"{self._name} has no column {column!r}; it has {', '.join(self._columns)}")
        return self[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame; texts of few values are categories.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise InputError(
                "to_pandas needs pandas, which is not installed: pip install '.[pandas]'"
            ) from error
        return pd.DataFrame(
            {
                name: pd.Categorical.from_codes(column.codes, pd.Index(column.names))
                if isinstance(column, Labels)
                else column
                for name, column in self._columns.items()
            }
        )

    def to_arrow(self) -> pyarrow.Table:
        """As an Arrow table; texts of few values are dictionaries.

        Raises
        ------
        InputError
            pyarrow is not installed.
        """
        try:
            import pyarrow as pa
        except ImportError as error:
            raise InputError(
                "to_arrow needs pyarrow, which is not installed: pip install '.[parquet]'"
            ) from error
        return pa.table(
            {
                name: pa.DictionaryArray.from_arrays(column.codes, list(column.names))
                if isinstance(column, Labels)
                else pa.array(column)
                for name, column in self._columns.items()
            }
        )

    def __repr__(self) -> str:
        rows = self.num_rows
        width = max(map(len, self._columns), default=0)
        lines = [f"  {name:<{width}}  {self._texts.get(name, '')}".rstrip() for name in self._columns]
        return "\n".join([f"{self._name}: {rows:,} row{'s' * (rows != 1)}", *lines])

    def _repr_html_(self) -> str:
        from cosim.results.render.html import table_html

        return table_html(self._name, self)
