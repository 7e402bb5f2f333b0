"""A typical service: FastAPI, SQLAlchemy's asynchronous ORM, asyncpg. Runs in its own virtual environment."""

import os
import secrets
from collections.abc import AsyncIterator
from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, EmailStr, create_model
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# A key from the settings needs no query, which favours this service.
API_KEY = os.environ["API_KEY"]
PLAN_MANAGERS = {UUID(each) for each in os.environ["PLAN_MANAGERS"].split(",")}

engine = create_async_engine(os.environ["DATABASE_URL"], pool_size=10, max_overflow=0)
session_factory = async_sessionmaker(engine, expire_on_commit=False)
app = FastAPI()


class Base(DeclarativeBase):
    """The tables."""


class ParticipantRow(Base):
    """A participant."""

    __tablename__ = "participants"

    plan_manager_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=text("uuidv7()"))
    first_name: Mapped[str | None]
    middle_name: Mapped[str | None]
    last_name: Mapped[str | None]
    preferred_name: Mapped[str | None]
    participant_number: Mapped[str | None]
    email: Mapped[str | None]
    phone_number: Mapped[str | None]
    date_of_birth: Mapped[date | None]
    gender: Mapped[str | None]
    pronouns: Mapped[str | None]
    state: Mapped[str | None]
    postcode: Mapped[str | None]
    address_line_1: Mapped[str | None]
    address_line_2: Mapped[str | None]
    city: Mapped[str | None]
    service_region_id: Mapped[str | None]
    status: Mapped[str] = mapped_column(default="Active")
    approval_required: Mapped[bool] = mapped_column(default=False)
    onboard_date: Mapped[date | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    date_ceased: Mapped[date | None]
    reason_for_leaving: Mapped[str | None]
    exit_reason_category_id: Mapped[UUID | None]
    exit_reason_subcategory_id: Mapped[UUID | None]
    account_manager_id: Mapped[UUID | None]
    is_pace_plan: Mapped[bool] = mapped_column(default=False)
    plan_start_date: Mapped[date | None]
    plan_end_date: Mapped[date | None]
    postal_statement: Mapped[bool] = mapped_column(default=False)
    participant_receives_statements: Mapped[bool] = mapped_column(default=False)


# The response of all requests: each column but that of the tenant.
Participant = create_model(
    "Participant",
    __config__=ConfigDict(from_attributes=True),
    **{
        column.name: (column.type.python_type | None if column.nullable else column.type.python_type, ...)
        for column in ParticipantRow.__table__.columns
        if column.name != "plan_manager_id"
    },
)


class ParticipantUpdate(BaseModel):
    """Body of create and update."""

    model_config = ConfigDict(extra="forbid")

    first_name: str | None = None
    last_name: str | None = None
    participant_number: str | None = None
    email: EmailStr | None = None
    state: str | None = None


class Page(BaseModel):
    """One page of the list."""

    data: list[Participant]
    total: int | None
    has_more: bool


async def get_session() -> AsyncIterator[AsyncSession]:
    async with session_factory() as db_session:
        yield db_session


async def get_tenant(
    credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())],
    plan_manager_id: Annotated[UUID, Header(alias="X-Plan-Manager-Id")],
) -> UUID:
    if not secrets.compare_digest(credentials.credentials, API_KEY):
        raise HTTPException(401)
    if plan_manager_id not in PLAN_MANAGERS:
        raise HTTPException(403)
    return plan_manager_id


Session = Annotated[AsyncSession, Depends(get_session)]
Tenant = Annotated[UUID, Depends(get_tenant)]


@app.get("/participants")
async def list_participants(
    db: Session,
    plan_manager_id: Tenant,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    offset: Annotated[int, Query(ge=0)] = 0,
    after: UUID | None = None,
    status: Literal["Active", "Inactive", "Lead"] | None = None,
    state: str | None = None,
) -> Page:
    statement = select(ParticipantRow).where(ParticipantRow.plan_manager_id == plan_manager_id)
    if status:
        statement = statement.where(ParticipantRow.status == status)
    if state:
        statement = statement.where(ParticipantRow.state == state)
    total = None
    if after:
        statement = statement.where(ParticipantRow.id > after)
    elif not offset:
        total = await db.scalar(select(func.count()).select_from(statement.subquery()))
    rows = (await db.scalars(statement.order_by(ParticipantRow.id).offset(offset).limit(limit + 1))).all()
    data = [Participant.model_validate(row) for row in rows[:limit]]
    return Page(data=data, total=total, has_more=len(rows) > limit)


@app.get("/participants/{participant_id}")
async def get_participant(db: Session, plan_manager_id: Tenant, participant_id: UUID) -> Participant:
    return Participant.model_validate(await _get_or_404(db, plan_manager_id, participant_id))


@app.post("/participants")
async def create_participant(db: Session, plan_manager_id: Tenant, update: ParticipantUpdate) -> Participant:
    row = ParticipantRow(plan_manager_id=plan_manager_id, **update.model_dump(exclude_unset=True))
    db.add(row)
    await db.commit()
    return Participant.model_validate(row)


@app.put("/participants/{participant_id}")
async def update_participant(
    db: Session, plan_manager_id: Tenant, participant_id: UUID, update: ParticipantUpdate
) -> Participant:
    row = await _get_or_404(db, plan_manager_id, participant_id)
    for name, value in update.model_dump(exclude_unset=True).items():
        setattr(row, name, value)
    await db.commit()
    return Participant.model_validate(row)


async def _get_or_404(db: AsyncSession, plan_manager_id: UUID, participant_id: UUID) -> ParticipantRow:
    row = await db.get(ParticipantRow, (plan_manager_id, participant_id))
    if row is None:
        raise HTTPException(404)
    return row
