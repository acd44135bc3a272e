"""What Python reads in ``kernel.h`` is what a C compiler makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from cosim.kernel.build import SOURCES, find_compiler
from cosim.kernel.layout import Header, header

_WORD = 8


def _asked() -> list[tuple[str, int]]:
    """Expressions of C, and what Python holds them to be."""
    known = header()
    asked: list[tuple[str, int]] = [*known.constants.items()]
    for name, dtype in known.records.items():
        asked.append((f"sizeof(struct {name})", dtype.itemsize))
        assert dtype.names is not None
        assert dtype.fields is not None
        for field in dtype.names:
            kind, offset = dtype.fields[field][:2]
            asked.append((f"offsetof(struct {name}, {field})", offset))
            asked.append((f"sizeof ((struct {name} *)0)->{field}", kind.itemsize))
    for name, container in known.containers.items():
        asked.append((f"sizeof(struct {name})", _WORD * container.words))
        for each in container.fields.values():
            of_container = f"struct {name}, {each.name}"
            asked.append((f"offsetof({of_container})", _WORD * each.place))
            if each.kind in ("column", "grown", "grid"):
                rows = "rows" if each.kind == "grid" else "len"
                asked.append((f"offsetof({of_container}_{rows})", _WORD * (each.place + 1)))
                asked.append((f"sizeof *((struct {name} *)0)->{each.name}", each.dtype.itemsize))
            if each.kind == "grid":
                asked.append((f"offsetof({of_container}_cols)", _WORD * (each.place + 2)))
            if each.kind in ("record", "number"):
                asked.append((f"sizeof ((struct {name} *)0)->{each.name}", each.dtype.itemsize))
    return asked


def test_a_compiler_has_every_field_where_python_has_it(tmp_path: Path) -> None:
    compiler = find_compiler()
    assert compiler is not None
    asked = _asked()
    lines = [f'  printf("%lld\\n", (long long)({expression}));' for expression, _ in asked]
    source = tmp_path / "places.c"
    source.write_text(
        "\n".join(
            ['#include "kernel.h"', "#include <stdio.h>", "int main(void) {", *lines, "  return 0;", "}\n"]
        )
    )
    subprocess.run(
        [*compiler, "-std=c17", f"-I{SOURCES}", "places.c", "-o", "places"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    printed = subprocess.run([tmp_path / "places"], capture_output=True, text=True, check=True, timeout=60)
    answers = map(int, printed.stdout.split())
    assert [
        f"{one[0]}: {answer}" for one, answer in zip(asked, answers, strict=True) if one[1] != answer
    ] == []


def test_signs_of_numbers_are_those_of_c() -> None:
    read = Header(
        "struct mixed {\n  int8_t a;\n  uint8_t b;\n  int16_t c;\n  int32_t d;\n"
        "  uint64_t e;\n  double f[2];\n};"
    )
    expected = [("a", "i1"), ("b", "u1"), ("c", "i2"), ("d", "i4"), ("e", "u8"), ("f", "f8", (2,))]
    assert read.record("mixed") == np.dtype(expected)


@pytest.mark.parametrize(
    ("body", "where"),
    [("int32_t a; int64_t b;", "before b"), ("int64_t a; int32_t b;", "at its end")],
)
def test_padding_that_nobody_wrote_is_refused(body: str, where: str) -> None:
    with pytest.raises(ValueError, match=f"struct gap: padding {where}"):
        Header(f"struct gap {{ {body} }};").record("gap")


def test_comments_are_no_code() -> None:
    read = Header(
        "/* struct no {\n  int64_t a; */ enum yes { ONE = 1, /* not 2 */ TWO, // THREE,\n  ALSO = ONE };\n"
    )
    assert read.constants == {}  # what is read begins its line
    read = Header(
        "enum yes {\n  ONE = 1, /* not 2 */\n  TWO, // THREE,\n  SIXTEEN = 0x10,\n  ALSO = ONE,\n};\n"
    )
    assert read.constants == {"ONE": 1, "TWO": 2, "SIXTEEN": 16, "ALSO": 1}
    assert read.records == {}


def test_functions() -> None:
    read = Header(
        "struct box {\n  COLUMN(double, size);\n};\n"
        "EXPORT double weigh(const struct box *box, int64_t count,\n"
        "                    const int32_t *which);\n"
        "LOOP void turn(struct box *box);\nEXPORT int64_t none(void);\n"
    )
    weigh, turn, none = (read.function(name) for name in ("weigh", "turn", "none"))
    assert [one.kind for one in weigh.parameters] == ["container", "int", "array"]
    assert weigh.returns == "double"
    assert weigh.parameters[2].constant
    assert turn.loop
    assert turn.returns == "none"
    assert none.parameters == ()
    with pytest.raises(KeyError):
        read.function("box")
