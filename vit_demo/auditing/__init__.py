"""Which pictures a network gets right, or wrong, for the wrong reason: ``vit_demo.audit``."""

from vit_demo.auditing.audit import Audit, audit
from vit_demo.auditing.groups import Group

__all__ = ["Audit", "Group", "audit"]
