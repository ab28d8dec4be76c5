"""Threads, seeds and kernels: what must be set before the first tensor."""

from __future__ import annotations

import ctypes
import os

import torch

from sam_repro.config.schema import Determinism, RuntimeConfig
from sam_repro.machine import cores

# What the libraries read when CUDA and NCCL start. Of NCCL's ways to sum, those that let a switch add up (NVLink SHARP
# on Hopper and later, CollNet) take the summands in whatever order they arrive; rings and trees have one order, and
# which of them NCCL takes follows from the size of the message and the machine.
BITWISE = {"NCCL_NVLS_ENABLE": "0", "NCCL_COLLNET_ENABLE": "0"}
CUBLAS, FIXED_WORKSPACES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")


def before_cuda(runtime: RuntimeConfig) -> None:
    """To be called before torch looks for a device: later these libraries do not ask again."""
    if runtime.determinism is Determinism.bitwise:
        os.environ |= BITWISE
        if os.environ.get(CUBLAS) not in FIXED_WORKSPACES:
            os.environ[CUBLAS] = FIXED_WORKSPACES[0]


def prepare(runtime: RuntimeConfig, seed: int, local_ranks: int) -> None:
    torch.set_num_threads(runtime.threads or max(1, cores() // max(1, local_ranks)))
    torch.manual_seed(seed)
    bitwise = runtime.determinism is Determinism.bitwise
    torch.use_deterministic_algorithms(bitwise)
    torch.backends.cudnn.deterministic = bitwise
    torch.backends.cudnn.benchmark = runtime.determinism is Determinism.off
    torch.backends.cuda.matmul.allow_tf32 = runtime.determinism is Determinism.off
    torch.backends.cudnn.allow_tf32 = runtime.determinism is Determinism.off
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Let glibc's malloc reuse freed activations instead of returning them to the system at every step.

    Page faults of fresh memory are up to a third of an fp32 step on a CPU. Elsewhere than on glibc nothing happens.
    """
    m_trim_threshold, m_mmap_threshold = -1, -3
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(m_mmap_threshold, 2**31 - 1)
        libc.mallopt(m_trim_threshold, 2**31 - 1)
    except (OSError, AttributeError):
        pass
