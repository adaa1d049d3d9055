"""Which pictures a network gets right, or wrong, for the wrong reason: ``vit_demo.audit``."""

from vit_demo.auditing.groups import Group
from vit_demo.auditing.report import Audit
from vit_demo.auditing.run import audit

__all__ = ["Audit", "Group", "audit"]
