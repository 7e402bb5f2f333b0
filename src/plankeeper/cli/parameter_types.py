"""The types of the commands' parameters: UUIDs, names, durations and limits."""

import re
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import click

from plankeeper.core.ids import parse_uuid
from plankeeper.core.setting_parsers import parse_rate_limit

F = TypeVar("F", bound=Callable[..., Any])


class UuidType(click.ParamType[UUID]):
    """A UUID with hyphens."""

    name = "uuid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> UUID:
        parsed = value if isinstance(value, UUID) else parse_uuid(value)
        return parsed or self.fail(f"{value!r} is not a UUID, such as 019a0000-0000-7000-8000-0000000000b1", param, ctx)


class NameType(click.ParamType[str]):
    """A display name: one line of text."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        has_control_characters = any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in value)
        if has_control_characters or not value.strip() or len(value) > 255:
            self.fail("must be one line of 1 to 255 characters, and not blank", param, ctx)
        return value


class DurationType(click.ParamType[timedelta]):
    """A duration such as 30s, 15m, 12h or 90d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", value)
        if not match:
            self.fail(f"{value!r} is not a duration, such as 30s, 15m, 12h or 90d", param, ctx)
        unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[match[2]]
        return timedelta(**{unit: int(match[1])})


class LimitType(click.ParamType[int]):
    """Requests per minute: `600/minute`, or `off`, which is 0."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_rate_limit(value)
        except ValueError as error:
            self.fail(f"{value!r} is not a rate limit; must be {error}", param, ctx)


UUID_TYPE = UuidType()
LIMIT = LimitType()
NAME = NameType()
DURATION = DurationType()


def plan_manager_option(help_text: str, *, is_required: bool = True) -> Callable[[F], F]:
    """The option `--plan-manager`, whose value is the parameter `plan_manager_id`."""
    return click.option("--plan-manager", "plan_manager_id", type=UUID_TYPE, required=is_required, help=help_text)
