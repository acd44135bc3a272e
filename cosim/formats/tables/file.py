"""Tables in a folder: ``operations.csv`` or ``operations.parquet`` and so on, written and read in batches."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TextIO

from cosim.errors import InputError, Location, WorkloadError, install_extra
from cosim.formats.tables.schema import TABLES

Suffix = Literal["csv", "parquet"]
Cells = Mapping[str, Sequence[Any]]

_BATCH = 1 << 16
_LARGEST = 2**63 - 1


class TableWriter:
    """Appends columns to the tables of a folder; memory holds one batch of each table."""

    def __init__(self, folder: Path, suffix: Suffix) -> None:
        self._folder, self._suffix = folder, suffix
        self._text: dict[str, TextIO] = {}
        self._parquet: dict[str, Any] = {}
        self._pending: dict[str, dict[str, list[Any]]] = {}
        self.rows = dict.fromkeys(TABLES, 0)

    def __enter__(self) -> Self:
        for table in TABLES:
            self._open(table)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for table in TABLES if kind is None and self._suffix == "parquet" else ():
            self._flush(table)
        for file in (*self._text.values(), *self._parquet.values()):
            file.close()

    def _open(self, table: str) -> None:
        path = self._folder / f"{table}.{self._suffix}"
        if self._suffix == "csv":
            file = path.open("w", encoding="utf-8", newline="")
            self._text[table] = file
            csv.writer(file, lineterminator="\n").writerow(TABLES[table])
        else:
            import pyarrow.parquet as pq

            self._parquet[table] = pq.ParquetWriter(path, _arrow_schema(table))
            self._pending[table] = {name: [] for name in TABLES[table]}

    def append(self, table: str, columns: Cells) -> None:
        """Rows, as columns of equal length; every column of the table."""
        count = len(next(iter(columns.values())))
        self.rows[table] += count
        if self._suffix == "csv":
            rows = zip(*(columns[name] for name in TABLES[table]), strict=True)
            csv.writer(self._text[table], lineterminator="\n").writerows(rows)
            return
        pending = self._pending[table]
        for name, cells in pending.items():
            cells.extend(columns[name])
        if len(next(iter(pending.values()))) >= _BATCH:
            self._flush(table)

    def _flush(self, table: str) -> None:
        import pyarrow as pa

        pending = self._pending[table]
        self._parquet[table].write_table(pa.table(pending, schema=_arrow_schema(table)))
        self._pending[table] = {name: [] for name in pending}


def _arrow_schema(table: str) -> Any:
    import pyarrow as pa

    types = {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}
    return pa.schema([(name, types[kind]) for name, kind in TABLES[table].items()])


def check_parquet() -> None:
    """Refuse Parquet without pyarrow.

    Raises
    ------
    InputError
        Says how to get it.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("parquet needs pyarrow", hint=install_extra("parquet") + ", or use csv") from None


def read_table(folder: Path, table: str, suffix: Suffix) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Rows with their places, cells as the schema says.

    Raises
    ------
    WorkloadError
        No such file, other columns, or a cell that isn't of its kind; names file, line and column.
    """
    path = folder / f"{table}.{suffix}"
    try:
        yield from _read_csv(path, table) if suffix == "csv" else _read_parquet(path, table)
    except OSError as error:
        raise WorkloadError(
            f"can't be read: {error.strerror or error}",
            location=Location(str(path)),
            hint=f"a folder with {', '.join(f'{name}.{suffix}' for name in TABLES)}",
        ) from None


def _read_csv(path: Path, table: str) -> Iterator[tuple[Location, dict[str, Any]]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            header = next(rows, [])
            _check_columns(path, table, header)
            for row in rows:
                where = Location(str(path), rows.line_num)
                if len(row) != len(header):
                    raise WorkloadError(
                        f"{len(row)} cells", location=where, hint=f"there are {len(header)} columns"
                    )
                yield (
                    where,
                    {name: _cell(where, table, name, text) for name, text in zip(header, row, strict=True)},
                )
        except (csv.Error, UnicodeDecodeError) as error:
            place = Location(str(path), rows.line_num + 1)
            raise WorkloadError(
                f"is not CSV: {error}", location=place, hint="as cosim translate writes it"
            ) from None


def _cell(where: Location, table: str, name: str, text: str) -> Any:
    kind = TABLES[table][name]
    if kind == "text":
        return text
    try:
        value = int(text) if kind == "int" else float(text)
    except ValueError:
        value = None
    if value is None or not abs(value) <= _LARGEST:
        right = "a whole number" if kind == "int" else "a number"
        raise WorkloadError(f"{name} is {text[:60]!r}", location=where, hint=f"it should be {right}")
    return value


def _check_columns(path: Path, table: str, header: Sequence[str]) -> None:
    wanted = list(TABLES[table])
    if sorted(header) != sorted(wanted):
        missing = [name for name in wanted if name not in header]
        other = [name for name in header if name not in wanted]
        what = (
            f"lacks the column {missing[0]!r}"
            if missing
            else f"has an unknown column {(other or ['twice'])[0]!r}"
        )
        raise WorkloadError(what, location=Location(str(path), 1), hint=f"columns are {', '.join(wanted)}")


def _read_parquet(path: Path, table: str) -> Iterator[tuple[Location, dict[str, Any]]]:
    check_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as stream:
            file = pq.ParquetFile(stream)
            _check_columns(path, table, file.schema_arrow.names)
            if file.schema_arrow.field("job").type != pa.int64():
                raise WorkloadError("column 'job' is not of whole numbers", location=Location(str(path)))
            at = 0
            wanted = _arrow_schema(table)
            for batch in file.iter_batches(_BATCH):
                columns = {
                    name: batch.column(batch.schema.get_field_index(name))
                    .cast(wanted.field(name).type)
                    .to_pylist()
                    for name in TABLES[table]
                }
                for place in range(batch.num_rows):
                    at += 1
                    where = Location(str(path), None, f"row {at}")
                    row = {name: cells[place] for name, cells in columns.items()}
                    empty = [name for name, cell in row.items() if cell is None]
                    if empty:
                        raise WorkloadError(f"{empty[0]} is missing", location=where)
                    yield where, row
    except (pa.ArrowException, ValueError) as error:
        if isinstance(error, WorkloadError):
            raise
        raise WorkloadError(
            f"is not Parquet as cosim writes it: {str(error).splitlines()[0][:200] if str(error) else ''}",
            location=Location(str(path)),
        ) from None
