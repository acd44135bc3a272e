"""What autograd keeps of another script until its last backward: ``saved.py OUT SCRIPT ARGUMENTS``.

Bytes of storages that are no parameter's; what autograd has when it is, ends the run.
"""

import json
import runpy
import sys
from pathlib import Path

import torch

out, script, *arguments = sys.argv[1:]
sys.argv = [script, *arguments]
kept: dict = {}


def pack(tensor):
    whole = tensor if tensor._base is None else tensor._base
    if not isinstance(whole, torch.nn.Parameter):
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage
    return tensor


def backward(*given, **more):
    Path(out).write_text(json.dumps(sorted(storage.nbytes() for storage in kept.values())))
    kept.clear()
    return real(*given, **more)


real, torch.Tensor.backward = torch.Tensor.backward, backward
with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
    runpy.run_path(script, run_name="__main__")
