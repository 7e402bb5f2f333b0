"""The writers of all mails, and what records the end of some, by kind."""

from plankeeper.access.accounts import mails as account_mails
from plankeeper.access.api_keys import mails as key_mails
from plankeeper.mail.store import MailOutcomes, MailWriters
from plankeeper.resources.invoices import approval_mails
from plankeeper.resources.payments import remittance_mails
from plankeeper.resources.statement_runs import mails as statement_mails
from plankeeper.webhooks import mails as webhook_mails

WRITERS: MailWriters = {
    **account_mails.WRITERS,
    **key_mails.WRITERS,
    **webhook_mails.WRITERS,
    **approval_mails.WRITERS,
    **remittance_mails.WRITERS,
    **statement_mails.WRITERS,
}
OUTCOMES: MailOutcomes = {**statement_mails.OUTCOMES}
