"""The setting of a trial: network, TCP, TLS, server and kernel, over which something is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from firstflight.net.headers import MSS
from firstflight.parameters import PARAMETERS, Parameter
from firstflight.setting.kernels import add_kernel
from firstflight.setting.path import LinkParameters, PathParameters
from firstflight.setting.server import BUILTIN, HERE, HTTP_1, ServerParameters
from firstflight.setting.tcp import TcpParameters
from firstflight.setting.tls import TlsParameters
from firstflight.testbed.messages import Job


@dataclass(frozen=True, kw_only=True)
class LinkSetting(LinkParameters, TcpParameters):
    """The bottleneck, TCP and the kernel: what the star and the dumbbell both have."""

    @property
    def paces(self) -> bool:
        """Whether a timer spreads what the server sends, as BBR and fq request."""
        return self.is_bbr or self.qdisc == "fq"

    @property
    def network_job(self) -> Mapping[str, Any]:
        """The network as a job has it (messages.NeededOfJob)."""
        raise NotImplementedError

    def job_over(self, kind: str, name: str, deadline_s: float) -> Job:
        """A job over this setting, to which the workload adds what is fetched.

        A value that is usual is left out. kind: the kind of the worker's bench. name: the trial's
        id.
        """
        job: Job = {
            "kind": kind, "id": name, "deadline_s": deadline_s,
            "network": self.network_job, "initcwnd": self.route_window,
            "initrwnd": self.client_window, "congestion_control": self.congestion_control}
        if self.seed:
            job["seed"] = self.seed
        if self.mss != MSS:
            job["options"] = {"advertised_mss": self.syn_mss}
        if self.most_window_bytes:
            job["window_bytes"] = self.most_window_bytes
        self.add_sysctls(job)
        if self.loss_probes == "off":
            job["sysctls"] = {"net.ipv4.tcp_early_retrans": "0"}
        add_kernel(job, self)
        return job


@dataclass(frozen=True, kw_only=True)
class NetworkSetting(LinkSetting, PathParameters):
    """The network of one client and one server, TCP and the kernel."""

    @property
    def network_job(self) -> Mapping[str, Any]:
        return self.path.to_json()

    def job_over(self, kind: str, name: str, deadline_s: float) -> Job:
        """A job as LinkSetting makes it; and how a new network without ARP entries repeats ARP."""
        job = super().job_over(kind, name, deadline_s)
        if self.arp_ms:
            job["arp_ms"] = self.arp_ms
        return job


@dataclass(frozen=True, kw_only=True)
class Setting(NetworkSetting, TlsParameters, ServerParameters):
    """The network, TCP, TLS, the server and the kernel. A workload adds what is fetched."""

    def is_default(self, row: Parameter) -> bool:
        """Whether a parameter has its default."""
        return bool(getattr(self, row.field) == row.default)

    @property
    def has_modelled_setting(self) -> bool:
        """Whether the model of TCP covers each parameter of the setting."""
        return all(map(self.is_default, _UNMODELLED))

    def job_over(self, kind: str, name: str, deadline_s: float) -> Job:
        """A job as NetworkSetting makes it, with its server.

        TLS is not in it: how many connections there are depends on what is fetched (tls_settings).
        """
        job = super().job_over(kind, name, deadline_s)
        if self.own:
            job["own"] = self.own.job()
        if self.server != BUILTIN:
            job["server"] = self.server
        if self.http != HTTP_1:
            job["http"] = self.http
        if self.system != HERE:
            job["system"] = self.system
        return job


_UNMODELLED = tuple(row for row in PARAMETERS.values() if not row.modelled
                    and row.field in {field.name for field in fields(Setting)})
