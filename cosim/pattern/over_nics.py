"""Messages of GPUs that have several NICs: cut into as many parts, each on a channel of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.pattern.template import Template


def over_nics(template: Template, nics: int) -> Template:
    """The template with each message as ``nics`` messages on channels 0, 1 ...; what waited for it waits for
    all of them. Templates with repeated blocks stay as they are.
    """
    if nics == 1 or (template.block_repeat > 1).any():
        return template
    rows = len(template.src)
    parts = np.where((template.src != template.dst) & (template.bytes > 0), nics, 1)
    first = np.concatenate([[0], np.cumsum(parts)])
    old = np.repeat(np.arange(rows), parts)
    part = np.arange(first[-1]) - first[old]
    degree = np.diff(template.dep_ptr)
    waiting = np.repeat(np.arange(rows), degree)
    target = waiting - template.dep_distance
    # Each dependency becomes one on every part of its target, and each part of a row has all of them.
    wide = parts[target]
    dependency = np.repeat(np.arange(len(target)), wide)
    on = first[target[dependency]] + np.arange(len(dependency)) - np.repeat(np.cumsum(wide) - wide, wide)
    of_row = np.bincount(waiting, wide, rows).astype(np.int64)
    ptr = np.concatenate([[0], np.cumsum(of_row)])
    new_ptr = np.concatenate([[0], np.cumsum(of_row[old])])
    each = np.repeat(np.arange(len(old)), of_row[old])
    at = ptr[old[each]] + np.arange(len(each)) - new_ptr[each]
    size = template.bytes[old]
    cut = parts[old] > 1
    # A row's chunks, `nics` times as many, are dealt out in a row.
    count = template.chunk_count[old]
    return replace(
        template,
        num_chunks=template.num_chunks * nics,
        owner=np.repeat(template.owner, nics),
        src=template.src[old],
        dst=template.dst[old],
        bytes=np.where(cut, -(-size // nics), size),
        channel=np.where(cut, part, template.channel[old]).astype(np.int32),
        delay_ps=template.delay_ps[old],
        dep_ptr=new_ptr,
        dep_distance=each - on[at],
        dep_kind=template.dep_kind[dependency][at],
        block_row=first[template.block_row],
        chunk=(template.chunk[old] * nics + part * count).astype(np.int32),
        chunk_step=template.chunk_step[old] * np.int32(nics),
        chunk_count=np.where(cut, count, count * nics).astype(np.int32),
        action=template.action[old],
        shift=template.shift[old] * np.int32(nics),
        num_scratch=template.num_scratch * nics,
    )
