"""The kernel on which a trial of any kind runs.

A trial has the fields of KERNEL: the name of its guest's kernel, and the parameters of the kernel's
modules.
"""

from __future__ import annotations

from typing import Protocol

from firstflight.parameters import PARAMETERS, default
from firstflight.testbed.messages import Job

KERNEL = ("kernel", "module_parameter")


class InGuest(Protocol):
    """A trial that names its kernel."""

    @property
    def kernel(self) -> str: ...

    @property
    def module_parameter(self) -> str: ...


def kernel_words(trial: InGuest) -> str:
    """The kernel in words: "default with tcp_cubic.hystart=0"."""
    if trial.module_parameter == default("module_parameter"):
        return trial.kernel
    return f"{trial.kernel} with {trial.module_parameter}"


def kernel_tag(trial: InGuest) -> str:
    """The part of a trial's id that names its kernel and parameters; "" where both are the default.
    """
    return "".join(f"-{PARAMETERS[name].tag}{getattr(trial, name)}" for name in KERNEL
                   if getattr(trial, name) != default(name))


def add_kernel(job: Job, trial: InGuest) -> None:
    """Add the kernel and its modules' parameters to a job, unless they are the default."""
    if trial.kernel != default("kernel"):
        job["kernel"] = trial.kernel
    if trial.module_parameter != default("module_parameter"):
        job["module_parameters"] = trial.module_parameter.split("+")


def pair_words(base: InGuest, experiment: InGuest) -> str:
    """Two kernels that are compared, in words: "default → mine"."""
    return f"{kernel_words(base)} → {kernel_words(experiment)}"
