"""benchmarks.outside.container: the list of system calls that containers have."""

from __future__ import annotations

import json

from benchmarks.outside.container import docker_profile

PODMANS = """{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
    {"names": ["clone", "clone3", "mount", "read", "unshare"], "action": "SCMP_ACT_ALLOW"},
    {"names": ["setns"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["arch_prctl"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["amd64"]}}]}"""


def test_namespaces_are_for_administrators() -> None:
    made = json.loads(json.dumps(docker_profile(json.loads(PODMANS))))
    allowed = {name: rule for rule in made["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW"
               and "caps" not in rule.get("includes", {}) for name in rule["names"]}
    assert set(allowed) == {"read", "arch_prctl", "clone"}
    assert allowed["clone"]["args"] == [{"index": 0, "value": 0x7E020000, "valueTwo": 0,
                                         "op": "SCMP_CMP_MASKED_EQ"}]
    refused = next(rule for rule in made["syscalls"] if rule["action"] == "SCMP_ACT_ERRNO")
    assert {"mount", "unshare", "setns"} <= set(refused["names"]) and refused["errnoRet"] == 1
