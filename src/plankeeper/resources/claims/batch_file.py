"""The file of a claim batch, the bulk payment request of the agency's portal: what each line has in it."""

from msgspec import Struct


class FileRow(Struct, frozen=True, kw_only=True):
    """A row of the file, in the order of its columns, as text."""

    registration_number: str
    ndis_number: str
    delivered_from: str
    delivered_to: str
    support_number: str
    claim_reference: str
    quantity: str
    hours: str = ""
    unit_price: str
    gst_code: str
    authorised_by: str = ""
    participant_approved: str = ""
    in_kind_funding_program: str = ""
    claim_type: str
    cancellation_reason: str
    provider_abn: str
