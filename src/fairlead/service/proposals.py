"""The bodies of requests that change the queue file, and of the answers that say what a change would do, or did.

Decides which values they may have; everything else is refused with its place. Never looks into a queue file.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairlead.service.fields import clean_text
from fairlead.service.models import ConfigAnswer, ConfigText, Reason, Strict

Base = Annotated[str, Field(max_length=64)] | None
_BASE = Field(None, description="The checksum that must be in force, such as `base` of a difference; else 409.")


class ConfigReplacement(ConfigText):
    """A queue file to put in force."""

    base: Base = _BASE


class ConfigProposal(Strict):
    """A queue file, or the number of an earlier version, to compare with what is in force."""

    text: Annotated[str, Field(max_length=4 * 2**20), AfterValidator(clean_text)] | None = None
    version: Annotated[int, Field(ge=1, le=2**31)] | None = None

    @model_validator(mode="after")
    def names_one(self) -> Self:  # noqa: N804 - a model that is there, no class
        """Either of the two."""
        if (self.text is None) == (self.version is None):
            raise ValueError("give either a text or a version")
        return self


class ConfigRollback(Strict):
    """Which version to put in force again."""

    version: Annotated[int, Field(ge=1, le=2**31)] | None = Field(
        None, description="Absent: the one before the one in force."
    )
    base: Base = _BASE


class ConfigApplied(ConfigAnswer):
    """What is in force after a change."""

    changed: bool = Field(description="False: it was in force already, and no new version was made.")


class ConfigDifference(BaseModel):
    """What a queue file would change."""

    model_config = ConfigDict(extra="allow")
    base: str = Field(description="The checksum of what it was compared with.")
    base_version: int
    checksum: str
    refused: Reason | None = Field(description="Why the scheduler would refuse it; null: it would be applied.")
    empty: bool = Field(description="Nothing at all would change.")
    partitions_added: list[str]
    partitions_removed: list[str]
    declared: list[dict[str, Any]]
    settings: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    over: list[dict[str, Any]]
    would_wait: dict[str, Any]
    would_wait_for_else: dict[str, Any]
    would_start: dict[str, Any]
    would_be_stopped: dict[str, Any]
    would_fail: dict[str, Any]
